"""Stands in for the comparing program: does what the text says, and takes as long as it says."""

import json
import os
import sys
import time

sys.stdout.write("ready\n")
sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    if "sleep" in request["text"]:
        time.sleep(600)
    if "die" in request["text"]:
        os._exit(3)
    sys.stdout.write(json.dumps({"reward": float(request["gold"] in request["text"])}) + "\n")
    sys.stdout.flush()
