"""A client of the plain dialect made of Python's websockets and nothing of ours.

Reads one JSON line of configuration from standard input, then the bytes to send.
Prints one JSON line with what it received.
"""

import asyncio
import hashlib
import json
import sys

import websockets

INPUT_CHUNK_BYTES = 32 * 1024
STREAMS = {1: "stdout", 2: "stderr"}


class Stream:
    def __init__(self, keep_bytes):
        self.digest = hashlib.sha256()
        self.length = 0
        self.head = b""
        self.keep_bytes = keep_bytes

    def push(self, data):
        self.digest.update(data)
        self.length += len(data)
        if len(self.head) < self.keep_bytes:
            self.head += data[: self.keep_bytes - len(self.head)]

    def result(self):
        text = self.head.decode("utf-8", "replace")
        return {"length": self.length, "sha256": self.digest.hexdigest(), "head": text}


async def send_input(socket, chunks, messages, send_eof):
    """A server that ends first is no error: its close code says what happened."""
    try:
        for message in messages:
            await socket.send(json.dumps(message))
        while chunk := await asyncio.to_thread(chunks.read, INPUT_CHUNK_BYTES):
            await socket.send(chunk)
        if send_eof:
            await socket.send(json.dumps({"type": "eof"}))
    except websockets.ConnectionClosed:
        pass


async def receive(socket, streams, control):
    try:
        async for message in socket:
            if isinstance(message, str):
                control.append(json.loads(message))
            else:
                streams[STREAMS[message[0]]].push(message[1:])
    except websockets.ConnectionClosed:
        pass


async def run(config, chunks):
    streams = {name: Stream(config["keepBytes"]) for name in STREAMS.values()}
    control = []
    try:
        socket = await websockets.connect(
            config["url"], extra_headers=config["headers"], compression=None, max_size=None
        )
    except websockets.InvalidStatusCode as refusal:
        return {"kind": "refused", "status": refusal.status_code}
    receiving = asyncio.create_task(receive(socket, streams, control))
    await send_input(socket, chunks, config["messages"], config["sendEof"])
    await receiving
    return {
        "kind": "closed",
        "code": socket.close_code,
        "reason": socket.close_reason,
        "control": control,
        "stdout": streams["stdout"].result(),
        "stderr": streams["stderr"].result(),
    }


def main():
    config = json.loads(sys.stdin.buffer.readline())
    print(json.dumps(asyncio.run(run(config, sys.stdin.buffer))))


main()
