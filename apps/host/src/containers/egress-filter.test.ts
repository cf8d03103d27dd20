import { expect, test } from 'bun:test'
import { chainOf, formatRules, listeningPorts, sidecarsOf } from './egress-filter.ts'

const PLAN = { chain: 'SANDWIRE-x', gateway: '172.17.0.1' }

test('a listener accepts its own sidecar and drops everything else', () => {
  const sidecars = [
    { address: '172.17.0.2', port: 40_001 },
    { address: '172.17.0.3', port: 40_002 },
  ]
  const rules = formatRules({ ...PLAN, ports: [40_001, 40_002], sidecars })
  expect(rules.split('\n')).toEqual([
    '*filter',
    ':SANDWIRE-x - [0:0]',
    '-A SANDWIRE-x -p tcp -d 172.17.0.1 --dport 40001 -s 172.17.0.2 -j RETURN',
    '-A SANDWIRE-x -p tcp -d 172.17.0.1 --dport 40001 -j DROP',
    '-A SANDWIRE-x -p tcp -d 172.17.0.1 --dport 40002 -s 172.17.0.3 -j RETURN',
    '-A SANDWIRE-x -p tcp -d 172.17.0.1 --dport 40002 -j DROP',
    'COMMIT',
    '',
  ])
})

test('a listener of a restarted workerd accepts the sidecars whose listener is not known', () => {
  const sidecars = [
    { address: '172.17.0.2', port: 30_000 },
    { address: '172.17.0.3', port: 40_002 },
    { address: '172.17.0.4', port: undefined },
  ]
  const rules = formatRules({ ...PLAN, ports: [40_001, 40_002], sidecars })
  const accepted = rules
    .split('\n')
    .flatMap((rule) => /--dport (\d+) -s (\S+) -j RETURN/.exec(rule)?.slice(1) ?? [])
  expect(accepted).toEqual(['40001', '172.17.0.2', '40001', '172.17.0.4', '40002', '172.17.0.3'])
})

test('a listener without sidecars accepts nothing', () => {
  expect(formatRules({ ...PLAN, ports: [40_001], sidecars: [] })).not.toContain('RETURN')
})

test('sidecars are running containers with an address, and name their listener', () => {
  const command = '/proxy --http-egress-port 40001 --http-ingress-address 0.0.0.0:39001'
  const sidecar = { name: 'workerd-sandbox-a-proxy', isRunning: true, address: '172.17.0.2', command }
  expect(
    sidecarsOf([
      sidecar,
      { ...sidecar, isRunning: false },
      { ...sidecar, address: '' },
      { ...sidecar, name: 'workerd-sandbox-a' },
      { ...sidecar, address: '172.17.0.3', command: '/other' },
    ]),
  ).toEqual([
    { address: '172.17.0.2', port: 40_001 },
    { address: '172.17.0.3', port: undefined },
  ])
})

test('finds the ports of a process at one address', () => {
  const listen = (hostname: string) => Bun.listen({ hostname, port: 0, socket: { data: () => undefined } })
  const [here, elsewhere] = [listen('127.0.0.77'), listen('127.0.0.78')]
  expect(listeningPorts(process.pid, '127.0.0.77')).toEqual([here.port])
  expect(listeningPorts(1, '127.0.0.78')).toEqual([])
  here.stop()
  elsewhere.stop()
  expect(listeningPorts(process.pid, '127.0.0.77')).toEqual([])
})

test('chain names fit and differ by data folder', () => {
  expect(chainOf('/a')).not.toBe(chainOf('/b'))
  expect(chainOf('/a').length).toBeLessThanOrEqual(28)
})
