// Stands in for the sidecar that workerd starts beside each container (cloudflare/proxy-everything), which no registry
// here has. It owns the network namespace of both: admits workerd, and forwards outgoing connections to workerd.
// Names that workerd does not intercept are not resolved, so other hosts are reached by address only.

import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Certificates } from './certificates.ts'
import { applyRules } from './firewall.ts'
import { serveIngress } from './ingress.ts'
import { catchConnections } from './interceptor.ts'
import { answerQuestion, matchesName } from './name-server.ts'

const CATCH_PORT = 39_002
const NAMES_PORT = 39_053

const { values } = parseArgs({
  options: {
    'http-egress-port': { type: 'string', default: '' },
    'http-ingress-address': { type: 'string', default: '' },
    'docker-gateway-cidr': { type: 'string' },
    'dns-enabled': { type: 'boolean' },
    'tls-intercept': { type: 'boolean' },
    'disable-ipv6': { type: 'boolean' },
  },
})

/** The machine's address, from the entry that the engine adds to /etc/hosts. */
function findGateway(): string {
  const found = /^(\S+)\s+host\.docker\.internal$/m.exec(readFileSync('/etc/hosts', 'utf8'))?.[1]
  if (found === undefined) throw new Error('host.docker.internal is not in /etc/hosts')
  return found
}

const gateway = findGateway()
const state = {
  egressPort: Number(values['http-egress-port']),
  caughtNames: [] as readonly string[],
  hasInternet: false,
}

function guard(): void {
  const { egressPort, hasInternet } = state
  applyRules({ gateway, egressPort, catchPort: CATCH_PORT, namesPort: NAMES_PORT, hasInternet })
}

guard()
const certificates = new Certificates()
catchConnections(CATCH_PORT, { gateway, egressPort: () => state.egressPort }, certificates)
await Bun.udpSocket({
  hostname: '127.0.0.1',
  port: NAMES_PORT,
  socket: {
    data(socket, question, port, address) {
      const answer = answerQuestion(question, (name) => matchesName(state.caughtNames, name))
      if (answer !== undefined) socket.send(answer, port, address)
    },
  },
})
serveIngress({
  port: Number(/:(\d+)$/.exec(values['http-ingress-address'])?.[1]),
  gateway,
  authority: () => certificates.authority,
  configure: ({ port, dns, internet }) => {
    state.egressPort = port ?? state.egressPort
    state.caughtNames = dns?.allowHostnames ?? state.caughtNames
    state.hasInternet = internet?.enabled ?? state.hasInternet
    guard()
  },
})
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
