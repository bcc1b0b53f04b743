"""Calls from several threads over gRPC until the service stops: `triton_load.py HOST:PORT`.

Prints "busy" when the calls are under way. Fails if a call ends in another way than with its answer, or with the
refusal of a service that stops.
"""

import sys
import threading

import numpy as np
import tritonclient.grpc as triton

THREADS = 8
answered, problems, lock = [0], [], threading.Lock()


def call():
    client = triton.InferenceServerClient(sys.argv[1])
    images = np.zeros((1, 1, 28, 28), np.uint8)
    image = triton.InferInput("image", images.shape, "UINT8").set_data_from_numpy(images)
    while True:
        try:
            total = client.infer("digits", [image], client_timeout=30).as_numpy("probabilities").sum()
        except triton.InferenceServerException as error:
            # A call that the service has not taken: it is refused, or there is no connection any more.
            if error.status() != "StatusCode.UNAVAILABLE":
                problems.append(str(error))
            return
        if abs(total - 1) > 1e-5:
            problems.append(f"probabilities that add up to {total}")
            return
        with lock:
            answered[0] += 1
            if answered[0] == 20 * THREADS:
                print("busy", flush=True)


threads = [threading.Thread(target=call) for _ in range(THREADS)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(f"{answered[0]} calls answered")
sys.exit("\n".join(problems) if problems else 0)
