import { expect, test } from 'bun:test'
import { type ControlPlan, describeWorkerd } from './workerd-config.ts'

const PLAN: ControlPlan = {
  script: 'export default {}',
  control: {
    mode: 'local',
    issuers: [],
    publicOrigins: [],
    hosts: [],
    localTokenSha256: '',
    sleepAfterMs: 1,
    alarmMs: 1,
    maxSandboxes: 1,
    machine: { memoryBytes: 1, milliCpus: 1, pids: 1, diskBytes: 1, diskOvercommit: 1 },
    provider: 'host',
    workspaceMode: 'sandboxes',
  },
  keys: { signingKey: 's', idKey: 'i', sessionTokenSecret: 'made' },
  secrets: {},
  credentials: {},
  issuerNetwork: { isOpen: false, privateAddresses: [] },
  upstreamNetwork: { isOpen: false, privateAddresses: [] },
  listen: ['127.0.0.1:1', '[::1]:1'],
  hostSocket: '/run/host.sock',
  slots: ['/run/slots/0', '/run/slots/1'],
  gates: ['/run/gates/0.sock', '/run/gates/1.sock'],
  objects: '/data/control',
  workbench: '/cache/workbench',
}
const CONFIG = describeWorkerd(PLAN)

function bindingsOf(plan: ControlPlan): ReadonlyMap<string | undefined, string | undefined> {
  const control = describeWorkerd(plan).services?.find(({ name }) => name === 'control')
  const bindings = control !== undefined && 'worker' in control ? control.worker?.bindings : undefined
  return new Map((bindings ?? []).map((each) => [each.name, 'text' in each ? each.text : undefined]))
}

test('every public socket leads to the public entrypoint and drops client headers', () => {
  expect(CONFIG.sockets?.map(({ address, service }) => [address, service])).toEqual([
    ['127.0.0.1:1', { name: 'control', entrypoint: 'Public' }],
    ['[::1]:1', { name: 'control', entrypoint: 'Public' }],
    ['unix:/run/gates/0.sock', { name: 'control', entrypoint: 'Gateway' }],
    ['unix:/run/gates/1.sock', { name: 'control', entrypoint: 'Gateway' }],
  ])
  for (const socket of CONFIG.sockets?.slice(0, 2) ?? []) {
    const http = 'http' in socket ? socket.http : undefined
    // Neither a header that would become `request.cf` nor an endpoint for RPC to the Worker.
    expect(Object.keys(http ?? {})).toEqual(['injectRequestHeaders'])
    expect(http?.injectRequestHeaders).toContainEqual({ name: 'cf-connecting-ip' })
    expect(http?.injectRequestHeaders?.every(({ value }) => value === undefined)).toBe(true)
  }
})

test('a gate states its slot, whatever the client sends', () => {
  expect(CONFIG.sockets?.[3]).toMatchObject({
    http: { injectRequestHeaders: [{ name: 'x-sandwire-slot', value: '1' }] },
  })
})

test('control can connect to the host and the slots, and to no network (threat T22)', () => {
  const services = Object.fromEntries((CONFIG.services ?? []).map((service) => [service.name, service]))
  expect(services['control']).toMatchObject({ worker: { globalOutbound: { name: 'nowhere' } } })
  expect(services['nowhere']).toMatchObject({ network: { allow: [], deny: ['0.0.0.0/0', '::/0'] } })
  expect(services['issuers']).toMatchObject({ network: { allow: [], deny: ['0.0.0.0/0', '::/0'] } })
  expect(services['upstreams']).toMatchObject({ network: { allow: [], deny: ['0.0.0.0/0', '::/0'] } })
  expect(services['host']).toMatchObject({ external: { address: 'unix:/run/host.sock' } })
  expect(services['workbench']).toMatchObject({ disk: { path: '/cache/workbench', writable: false } })
  const control = services['control']
  const bindings = control !== undefined && 'worker' in control ? control.worker?.bindings : undefined
  for (const slot of [0, 1]) {
    expect(services[`slot-${slot}`]).toMatchObject({ external: { address: `unix:/run/slots/${slot}` } })
    expect(bindings).toContainEqual({ name: `SLOT_${slot}`, service: { name: `slot-${slot}` } })
  }
  expect(Object.keys(services).sort()).toEqual([
    'control',
    'host',
    'issuers',
    'nowhere',
    'objects',
    'slot-0',
    'slot-1',
    'upstreams',
    'workbench',
  ])
})

test('no WebSocket of control is compressed (threat T29)', () => {
  const control = CONFIG.services?.find(({ name }) => name === 'control')
  expect(control).toMatchObject({
    worker: {
      compatibilityFlags: [
        'no_web_socket_compression',
        'enable_request_signal',
        'nodejs_compat',
        'no_nodejs_compat_v2',
      ],
    },
  })
})

test('secrets are bindings, and a session key is always there', () => {
  const bare = bindingsOf(PLAN)
  expect([bare.has('JWT_SECRET'), bare.has('API_TOKEN'), bare.get('SESSION_TOKEN_SECRET')]).toEqual([
    false,
    false,
    'made',
  ])
  const full = bindingsOf({ ...PLAN, secrets: { jwtSecret: 'j', apiToken: 'a', sessionTokenSecret: 's' } })
  expect([full.get('JWT_SECRET'), full.get('API_TOKEN'), full.get('SESSION_TOKEN_SECRET')]).toEqual([
    'j',
    'a',
    's',
  ])
})

test('sockets use TLS with a certificate, and drop client headers', () => {
  const tls = { certificateChain: 'c', privateKey: 'k' }
  for (const socket of describeWorkerd({ ...PLAN, tls, gates: [] }).sockets ?? []) {
    const https = 'https' in socket ? socket.https : undefined
    expect(https?.tlsOptions).toEqual({ keypair: tls })
    expect(https?.options?.injectRequestHeaders).toContainEqual({ name: 'x-forwarded-host' })
    expect(socket).not.toHaveProperty('http')
  }
})

test('sockets drop headers of proxies, except those by which a proxy that is not configured is noticed', () => {
  const droppedWith = (control: Partial<ControlPlan['control']>): readonly string[] =>
    (describeWorkerd({ ...PLAN, control: { ...PLAN.control, ...control } }).sockets ?? []).flatMap((socket) =>
      'http' in socket ? (socket.http?.injectRequestHeaders ?? []).map(({ name = '' }) => name) : [],
    )
  for (const name of ['forwarded', 'x-forwarded-for']) {
    expect(droppedWith({})).not.toContain(name)
    expect(droppedWith({ clientAddressHeader: 'x-client' })).toContain(name)
    expect(droppedWith({ clientAddressHeader: name })).not.toContain(name)
  }
  expect(droppedWith({})).toContain('cf-connecting-ip')
})

test('with containers, only sandbox objects have one, and their requests go to the egress proxy', () => {
  const containers = {
    socket: '/run/docker.sock',
    image: 'sandbox:1',
    egressImage: 'egress:1',
    egressSocket: '/run/egress.sock',
  }
  const services = describeWorkerd({ ...PLAN, slots: [], containers }).services ?? []
  const control = services.find(({ name }) => name === 'control')
  expect(control).toMatchObject({
    worker: {
      containerEngine: {
        localDocker: { socketPath: 'unix:///run/docker.sock', containerEgressInterceptorImage: 'egress:1' },
      },
      durableObjectNamespaces: [
        { className: 'SandboxObject', container: { imageName: 'sandbox:1' } },
        { className: 'AccountObject' },
        { className: 'MachineObject' },
        { className: 'GatewayGrantObject' },
        { className: 'ClaudeSandbox' },
        { className: 'ConversationObject' },
      ],
    },
  })
  const worker = control !== undefined && 'worker' in control ? control.worker : undefined
  for (const other of worker?.durableObjectNamespaces?.slice(1) ?? [])
    expect(other).not.toHaveProperty('container')
  expect(worker?.bindings).toContainEqual({ name: 'OUTSIDE', service: { name: 'outside' } })
  const outside = services.find(({ name }) => name === 'outside')
  expect(outside).toEqual({
    name: 'outside',
    external: { address: 'unix:/run/egress.sock', http: { style: 1 } },
  })
})

test('the young generation of V8 is bounded', () => {
  expect(CONFIG.v8Flags).toEqual(['--max-semi-space-size=4'])
})
