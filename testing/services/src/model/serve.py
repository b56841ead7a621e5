# serve.py WEIGHTS PORT NAME chat|embeddings [TEMPLATE]: an HTTP server for one local model, on loopback.
import signal
import sys
import threading

import xllamacpp

weights, port, name, task = sys.argv[1:5]
settings = xllamacpp.CommonParams()
settings.model.path = weights
settings.hostnames, settings.port = ["127.0.0.1"], int(port)
settings.model_alias = type(settings.model_alias)([name])
settings.n_ctx, settings.n_parallel = 16384, 2
# Threads that spin while they wait make everything beside them many times slower.
settings.cpuparams.n_threads, settings.cpuparams.poll = 1, 0
settings.use_jinja, settings.warmup = True, False
if task == "embeddings":
    settings.embedding = True
    settings.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
if len(sys.argv) > 5:
    with open(sys.argv[5]) as template:
        settings.chat_template = template.read()
server = xllamacpp.Server(settings)
print("listening", server.listening_address, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
threading.Event().wait()
