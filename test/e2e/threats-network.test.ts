import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import type { TCPSocketListener } from 'bun'
import { eventually } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { readShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { mintHex } from './support/wire-client.ts'
import { openPacketCapture, type PacketCapture } from './support/packet-capture.ts'

const MARK = `cnry${mintHex()}`
/** Sent reversed to the sandbox, because that connection is captured too. */
const REVERSED = MARK.split('').toReversed().join('')
const isRoot = process.getuid?.() === 0
const problem = (await findBubblewrapProblem()) ?? (Bun.which('python3') === null ? 'no python3' : undefined)

/** Tries every protocol on every address and prints the attempts that succeeded. */
const ATTEMPTS = `
import socket, sys
mark, port, addresses = sys.argv[1][::-1], int(sys.argv[2]), sys.argv[3:]
def attempt(name, do):
    try:
        do()
        print(name)
    except OSError:
        pass
def tcp(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(1)
    s.connect((address, port))
def datagram(family, address, protocol, to):
    socket.socket(family, socket.SOCK_DGRAM, protocol).sendto(b"\\x08\\0\\0\\0\\0\\1\\0\\1" + mark.encode(), (address, to))
def raw(family, address, protocol):
    socket.socket(family, socket.SOCK_RAW, protocol).sendto(mark.encode(), (address, 0))
for address in addresses:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    attempt("tcp " + address, lambda: tcp(family, address))
    attempt("udp " + address, lambda: datagram(family, address, 0, port))
    attempt("dns " + address, lambda: datagram(family, address, 0, 53))
    attempt("ping " + address, lambda: datagram(family, address, 58 if ":" in address else 1, 0))
    for protocol in (1, 17, 58, 255):
        attempt("raw %d %s" % (protocol, address), lambda: raw(family, address, protocol))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("name", lambda: socket.getaddrinfo(mark + ".example.com", 80))
print("tried")
`

/** Addresses that a sandbox must not reach: this machine, its network, the internet and cloud metadata. */
function addresses(): string[] {
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const outside = own.filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  const gateways = outside
    .filter(({ family }) => family === 'IPv4')
    .map(({ address }) => address.replace(/\d+$/, '1'))
  return [
    ...outside.map(({ address }) => address),
    ...gateways,
    '1.1.1.1',
    '169.254.169.254',
    '255.255.255.255',
    '224.0.0.1',
    '2606:4700:4700::1111',
  ]
}

describe.skipIf(problem !== undefined)('the network of a sandbox (threat T22)', () => {
  let deployment: Deployment
  let listener: TCPSocketListener<undefined>
  let capture: PacketCapture | undefined
  let connections = 0
  beforeAll(async () => {
    listener = Bun.listen({
      hostname: '0.0.0.0',
      port: 0,
      socket: { open: () => void (connections += 1), data: () => undefined },
    })
    if (isRoot) capture = await openPacketCapture(MARK, listener.port)
    deployment = await Deployment.open()
    await Promise.all([
      deployment.create('none'),
      deployment.create('empty', { network: { policy: 'allowlist', allow: [] } }),
      deployment.create('some', { network: { policy: 'allowlist', allow: ['allowed.example'] } }),
      deployment.create('open', { network: { policy: 'open' } }),
    ])
  })
  afterAll(async () => {
    listener.stop(true)
    await capture?.[Symbol.asyncDispose]()
    await deployment[Symbol.asyncDispose]()
  })

  const attempt = (targets: readonly string[]): string =>
    `python3 - ${REVERSED} ${listener.port} ${targets.join(' ')} <<'PY'\n${ATTEMPTS}PY`

  test.each(['none', 'empty', 'some', 'open'])(
    'with policy %s sends no TCP, UDP, ICMP, DNS or raw packet',
    async (name) => {
      // Excludes the sandbox's own loopback, which accepts datagrams and discards them.
      expect(await readShell(deployment.sandbox(name), attempt(addresses()))).toBe('tried\n')
      await readShell(deployment.sandbox(name), attempt(['127.0.0.1', '127.0.0.2', '::1', '0.0.0.0']))
      expect(connections).toBe(0)
      expect(capture?.packets ?? []).toEqual([])
    },
  )

  test('has a proxy only with a policy', async () => {
    const proxied = 'env | grep -ic _proxy='
    expect(
      await readShell(deployment.sandbox('none'), `${proxied}; (: < /dev/tcp/127.0.0.1/3128) 2>&1`),
    ).toStartWith('0\n')
    for (const name of ['empty', 'some', 'open'])
      expect(Number(await readShell(deployment.sandbox(name), proxied))).toBeGreaterThan(0)
  })

  test.each(['empty', 'some', 'open'])(
    'with policy %s does not reach this machine through the proxy',
    async (name) => {
      const targets = [
        '127.0.0.1',
        'localhost',
        '[::1]',
        '0.0.0.0',
        '[::ffff:127.0.0.1]',
        ...addresses().filter((each) => !each.includes(':')),
      ]
      const lines = targets.map(
        (target) =>
          `curl -s -o /dev/null -m 3 -w '%{http_connect}%{http_code} ' http://${target}:${listener.port}/`,
      )
      const tunnels = targets.map(
        (target) => `curl -s -p -o /dev/null -m 3 -w '%{http_connect} ' http://${target}:${listener.port}/`,
      )
      const said = await readShell(deployment.sandbox(name), [...lines, ...tunnels, 'echo tried'].join('; '))
      expect(said).toEndWith('tried\n')
      expect(said).not.toMatch(/\b(000)?200\b/)
      expect(connections).toBe(0)
    },
  )

  test.skipIf(!isRoot)('is watched by a capture that sees every packet sent', async () => {
    const own = Bun.spawnSync(['python3', '-c', ATTEMPTS, REVERSED, String(listener.port), '127.0.0.1'])
    expect(own.stdout.toString()).toContain('udp 127.0.0.1\n')
    await eventually(() => (capture?.packets.length ?? 0) >= 2 && connections > 0, { what: 'the packets' })
  })
})
