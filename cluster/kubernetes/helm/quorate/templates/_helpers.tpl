{{/* The labels of everything that the chart makes. Services find pods by them. */}}
{{- define "quorate.labels" -}}
app.kubernetes.io/name: quorate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The domain that follows the name of a service, also in certificates. */}}
{{- define "quorate.domain" -}}
{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{- define "quorate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Checks values that depend on each other. */}}
{{- define "quorate.checked" -}}
{{- if and .Values.tls (not .Values.secretName) }}
{{- fail "secretName must name the secret with the certificates, or tls must be false" }}
{{- end }}
{{- if and .Values.restore.secretName .Values.restore.claimName }}
{{- fail "restore must have secretName or claimName, and has both" }}
{{- end }}
{{- if and .Values.rules (not .Values.tokens.secretName) }}
{{- fail "rules needs tokens.secretName: the job that applies them shows the token `admin` of that secret" }}
{{- end }}
{{- if and .Values.rules (not .Values.tls) }}
{{- fail "rules needs tls: nodes without it take changes from their own pod only. Put the first rules into settings.rules instead" }}
{{- end }}
{{- end }}
