"""What tritonclient asks over gRPC of a service that has the model `digits`: `triton_grpc_client.py HOST:PORT`."""

import queue
import sys

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

client = triton.InferenceServerClient(sys.argv[1])
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
assert not client.is_model_ready("none")
assert "classification" in client.get_server_metadata().extensions
metadata = client.get_model_metadata("digits")
assert (metadata.inputs[0].name, metadata.inputs[0].datatype) == ("image", "UINT8")
assert list(metadata.inputs[0].shape) == [-1, 1, 28, 28]
config = client.get_model_config("digits").config
assert (config.max_batch_size, config.input[0].data_type, list(config.output[0].dims)) == (64, 2, [10])
assert config.HasField("dynamic_batching") and not config.model_transaction_policy.decoupled
index = client.get_model_repository_index().models
assert [(one.name, one.version, one.state) for one in index] == [("digits", "1", "READY")]

images = np.random.default_rng(0).integers(0, 256, (5, 1, 28, 28), dtype=np.uint8)


def tensor(values):
    return triton.InferInput("image", values.shape, "UINT8").set_data_from_numpy(values)


expected = client.infer("digits", [tensor(images)]).as_numpy("probabilities")
assert expected.shape == (5, 10) and np.allclose(expected.sum(1), 1)
for coding in (None, "gzip", "deflate"):
    outputs = [triton.InferRequestedOutput("probabilities"), triton.InferRequestedOutput("logits", class_count=2)]
    result = client.infer("digits", [tensor(images)], model_version="1", outputs=outputs, request_id="r 1",
                          timeout=10_000_000, compression_algorithm=coding)
    assert result.get_response().id == "r 1"
    assert np.allclose(result.as_numpy("probabilities"), expected, atol=1e-6)
    best = result.as_numpy("logits")
    assert best.shape == (5, 2)
    assert [int(one.decode().split(":")[1]) for one in best[:, 0]] == list(expected.argmax(1))

# Numbers of the message instead of bytes.
request = triton.service_pb2.ModelInferRequest(model_name="digits")
typed = request.inputs.add(name="image", datatype="UINT8", shape=[1, 1, 28, 28])
typed.contents.uint_contents.extend(int(one) for one in images[0].reshape(-1))
answer = client._client_stub.ModelInfer(request)
assert np.allclose(np.frombuffer(answer.raw_output_contents[1], np.float32), expected[0], atol=1e-6)

answers = queue.Queue()
client.start_stream(callback=lambda result, error: answers.put((result, error)))
for i in range(5):
    client.async_stream_infer("digits", [tensor(images[i:i + 1])], request_id=str(i))
client.async_stream_infer("none", [tensor(images)])
for i in range(5):
    result, error = answers.get(timeout=20)
    assert error is None and result.get_response().id == str(i)
    assert np.allclose(result.as_numpy("probabilities")[0], expected[i], atol=1e-6)
result, error = answers.get(timeout=20)
assert error is not None and "is not found" in str(error)
client.stop_stream()

for call, status in ((lambda: client.infer("none", [tensor(images)]), "StatusCode.NOT_FOUND"),
                     (lambda: client.infer("digits", [tensor(images[0])]), "StatusCode.INVALID_ARGUMENT"),
                     (lambda: client.load_model("none"), "StatusCode.NOT_FOUND"),
                     (lambda: client.load_model("digits", config="{}"), "StatusCode.UNIMPLEMENTED")):
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == status, (error.status(), str(error))
    else:
        raise AssertionError("no error")

statistics = client.get_inference_statistics("digits").model_stats[0]
assert statistics.inference_count == 5 * 4 + 1 + 5, statistics
assert statistics.batch_stats[0].batch_size == 1
client.unload_model("digits")
assert not client.is_model_ready("digits")
client.load_model("digits")
assert client.is_model_ready("digits")
