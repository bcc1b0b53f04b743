"""The service from Python, with Triton's client: client.py MODEL [HOST:PORT].

pip install 'tritonclient[http]==2.50.0' numpy
"""

import sys

import numpy as np
import tritonclient.http as triton

NUMPY = {"UINT8": np.uint8, "FP32": np.float32}


def main(name: str, address: str = "127.0.0.1:8000") -> None:
    """Sends two samples of noise, and prints what the model makes of each."""
    with triton.InferenceServerClient(address) as client:
        described = client.get_model_metadata(name)["inputs"][0]
        shape = [2, *described["shape"][1:]]
        samples = np.random.default_rng(0).integers(0, 256, shape).astype(NUMPY[described["datatype"]])
        tensor = triton.InferInput(described["name"], shape, described["datatype"])
        tensor.set_data_from_numpy(samples)
        best = triton.InferRequestedOutput("probabilities", class_count=3)
        answer = client.infer(name, [tensor], outputs=[best])
        for row in answer.as_numpy("probabilities"):
            print([text.decode() for text in row])


if __name__ == "__main__":
    main(*sys.argv[1:])
