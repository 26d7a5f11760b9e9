#!/bin/sh
# `api` serves questions, `ingest …` is the batch worker; anything else is run as it stands.
set -eu
command=${1:-api}
case $command in
    api)
        # Beyond the container's own loopback only with keys; the service itself refuses anything else.
        if [ -n "${API_KEYS:-}" ]; then
            export API_HOST="${API_HOST:-0.0.0.0}"
        else
            echo "API_KEYS is not set: listening inside the container only" >&2
        fi
        exec sextant-api
        ;;
    ingest)
        shift
        exec sextant-ingest "$@"
        ;;
    *)
        exec "$@"
        ;;
esac
