# The image of one node: `docker build -t quorate .`. docs/operate/kubernetes.md says what it runs and which variables it reads.
FROM node:20.20-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json tsconfig.json README.md LICENSE ./
COPY bin bin
COPY cluster cluster
COPY docs docs
COPY raft raft
COPY src src
COPY storage storage
# As `npm pack` makes it, with the packages that it runs with, by the lock file.
RUN npm pack --silent --pack-destination /tmp \
    && mkdir /app \
    && tar xzf /tmp/quorate-*.tgz -C /app --strip-components=1 \
    && cp package-lock.json /app/ \
    && cd /app \
    && npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:20.20-bookworm-slim
COPY --from=build /app /app
# /data belongs to user 1000 of the Node image, as whom the node runs. New volumes at /data take over its owner.
RUN ln -s /app/bin/quorate.mjs /usr/local/bin/quorate && install -d -o 1000 -g 1000 /data
USER 1000:1000
WORKDIR /data
VOLUME /data
# A node has work for two threads: one for its disk, one for names and files. The larger young generation: cluster/processes.ts.
ENV NODE_ENV=production NODE_OPTIONS="--enable-source-maps --max-semi-space-size=32" UV_THREADPOOL_SIZE=2 QUORATE_DATA=/data
# HTTP, peers, the Redis protocol, gRPC, and how nodes found a cluster.
EXPOSE 8100 9100 10100 11100 7100
# On SIGTERM a node hands over what it leads and answers open requests, within ten seconds.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/dist/src/cli/main.js"]
CMD ["container"]
