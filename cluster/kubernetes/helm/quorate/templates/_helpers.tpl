{{/* Of all that the chart makes, and by which pods are found. */}}
{{- define "quorate.labels" -}}
app.kubernetes.io/name: quorate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Behind the name of a service. Of certificates, too. */}}
{{- define "quorate.domain" -}}
{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{- define "quorate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What several values say together. */}}
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
