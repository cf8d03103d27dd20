import { eventually } from '@sandwire/testing'
import { readLines } from './lines.ts'

/** Captures every interface and prints a line for each packet that contains the mark or goes to the port. */
const SNIFF = `
import socket, struct, sys
mark, port = sys.argv[1].encode(), struct.pack("!H", int(sys.argv[2]))
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
print("ready", flush=True)
while True:
    packet, (name, protocol, *_) = s.recvfrom(65536)
    at = (packet[0] & 15) * 4 if protocol == 0x0800 else 40
    isTcp = protocol in (0x0800, 0x86dd) and packet[9 if protocol == 0x0800 else 6] == 6
    if mark in packet or isTcp and packet[at + 2:at + 4] == port:
        print(f"{name} {protocol:x} {len(packet)}", flush=True)
`

/** Captures packets that contain a mark, and TCP to one port. Needs root and python3. */
export interface PacketCapture extends AsyncDisposable {
  /** A line per captured packet. */
  readonly packets: readonly string[]
}

export async function openPacketCapture(mark: string, port: number): Promise<PacketCapture> {
  const child = Bun.spawn(['python3', '-c', SNIFF, mark, String(port)], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const packets: string[] = []
  let isReady = false
  void (async () => {
    for await (const line of readLines(child.stdout))
      if (isReady) packets.push(line)
      else isReady = true
  })()
  await eventually(() => isReady, { what: 'the packet capture' })
  return {
    packets,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}
