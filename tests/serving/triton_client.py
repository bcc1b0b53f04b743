"""What tritonclient asks of a service that has the model `digits`: `triton_client.py HOST:PORT`."""

import asyncio
import sys

import numpy as np
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

client = triton.InferenceServerClient(sys.argv[1], concurrency=4)
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
assert not client.is_model_ready("none")
assert "classification" in client.get_server_metadata()["extensions"]
assert client.get_model_metadata("digits")["inputs"] == [
    {"name": "image", "datatype": "UINT8", "shape": [-1, 1, 28, 28]}]
assert client.get_model_config("digits")["max_batch_size"] == 64
assert client.get_model_repository_index() == [{"name": "digits", "version": "1", "state": "READY", "reason": ""}]

images = np.random.default_rng(0).integers(0, 256, (5, 1, 28, 28), dtype=np.uint8)


def tensor(values, binary=True):
    return triton.InferInput("image", values.shape, "UINT8").set_data_from_numpy(values, binary_data=binary)


expected = client.infer("digits", [tensor(images)]).as_numpy("probabilities")
assert expected.shape == (5, 10) and np.allclose(expected.sum(1), 1)
for binary in (True, False):
    for coding in (None, "gzip", "deflate"):
        outputs = [triton.InferRequestedOutput("probabilities", binary_data=binary),
                   triton.InferRequestedOutput("logits", binary_data=binary, class_count=2)]
        result = client.infer("digits", [tensor(images, binary)], model_version="1", outputs=outputs, request_id="r 1",
                              timeout=10_000_000, request_compression_algorithm=coding,
                              response_compression_algorithm=coding)
        assert result.get_response()["id"] == "r 1"
        assert np.allclose(result.as_numpy("probabilities"), expected, atol=1e-6)
        best = result.as_numpy("logits")
        assert best.shape == (5, 2)
        texts = [one.decode() if isinstance(one, bytes) else one for one in best[:, 0]]
        assert [int(one.split(":")[1]) for one in texts] == list(expected.argmax(1))

waiting = [client.async_infer("digits", [tensor(images[i:i + 1])]) for i in range(5)]
for i, one in enumerate(waiting):
    assert np.allclose(one.get_result().as_numpy("probabilities")[0], expected[i], atol=1e-6)

for call, status in ((lambda: client.infer("none", [tensor(images)]), "404"),
                     (lambda: client.infer("digits", [tensor(images[0])]), "400"),
                     (lambda: client.load_model("none"), "404")):
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == status, (error.status(), str(error))
    else:
        raise AssertionError("no error")

statistics = client.get_inference_statistics("digits")["model_stats"][0]
assert statistics["inference_count"] == 5 * 7 + 5, statistics
client.unload_model("digits")
assert not client.is_model_ready("digits")
client.load_model("digits")
assert client.is_model_ready("digits")


async def ask():
    async with triton_aio.InferenceServerClient(sys.argv[1]) as other:
        results = await asyncio.gather(*[other.infer("digits", [tensor(images[i:i + 1])]) for i in range(5)])
        for i, result in enumerate(results):
            assert np.allclose(result.as_numpy("probabilities")[0], expected[i], atol=1e-6)

asyncio.run(ask())
