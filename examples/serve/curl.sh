#!/bin/sh
# The service from the shell: curl.sh IMAGE [URL]. Start it first: gpunn serve RUN
set -eu
image=$1
url=${2:-http://127.0.0.1:8000}

curl -sf "$url/v2/health/ready" && echo "ready"
curl -sf "$url/v2"
echo
curl -sf -X POST "$url/v2/repository/index"
echo
# The classes of an image, as the body and as a form sends it.
curl -sf --data-binary "@$image" "$url/v1/classify?top=3"
echo
curl -sf -F "image=@$image" "$url/v1/classify?top=3"
echo
# What speaks for the first class, as a picture.
curl -sf --data-binary "@$image" -H "Accept: image/png" "$url/v1/explain" -o why.png
curl -sf "$url/metrics" | grep ^nv_inference_count
