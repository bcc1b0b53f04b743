-- A request to LeNet-5 for wrk: one image as bytes behind the JSON, the probabilities as bytes back.
--   wrk -t1 -c64 -d5s -s infer.lua http://127.0.0.1:8000/v2/models/lenet/infer
local json = '{"inputs":[{"name":"image","shape":[1,1,28,28],"datatype":"UINT8",' ..
    '"parameters":{"binary_data_size":784}}],' ..
    '"outputs":[{"name":"probabilities","parameters":{"binary_data":true}}]}'
wrk.method = "POST"
wrk.body = json .. string.rep("\7", 784)
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.headers["Inference-Header-Content-Length"] = tostring(#json)
