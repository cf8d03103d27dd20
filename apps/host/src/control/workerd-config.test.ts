import { expect, test } from 'bun:test'
import { describeWorkerd } from './workerd-config.ts'

const CONFIG = describeWorkerd({
  script: 'export default {}',
  control: {
    mode: 'local',
    publicOrigins: [],
    hosts: [],
    localTokenSha256: '',
    sleepAfterMs: 1,
    alarmMs: 1,
    maxSandboxes: 1,
    provider: 'host',
    workspaceMode: 'sandboxes',
  },
  keys: { signingKey: 's', idKey: 'i' },
  listen: ['127.0.0.1:1', '[::1]:1'],
  hostSocket: '/run/host.sock',
  slots: ['/run/slots/0', '/run/slots/1'],
  objects: '/data/control',
})

test('every socket leads to the public entrypoint and believes no header about the client', () => {
  expect(CONFIG.sockets?.map(({ address, service }) => [address, service])).toEqual([
    ['127.0.0.1:1', { name: 'control', entrypoint: 'Public' }],
    ['[::1]:1', { name: 'control', entrypoint: 'Public' }],
  ])
  for (const socket of CONFIG.sockets ?? []) {
    const http = 'http' in socket ? socket.http : undefined
    // Neither a header that would become `request.cf` nor a door for remote calls of the Worker.
    expect(Object.keys(http ?? {})).toEqual(['injectRequestHeaders'])
    expect(http?.injectRequestHeaders).toContainEqual({ name: 'cf-connecting-ip' })
    expect(http?.injectRequestHeaders?.every(({ value }) => value === undefined)).toBe(true)
  }
})

test('control dials the sockets of the host and the slots, and no network (threat T22)', () => {
  const services = Object.fromEntries((CONFIG.services ?? []).map((service) => [service.name, service]))
  expect(services['control']).toMatchObject({ worker: { globalOutbound: { name: 'nowhere' } } })
  expect(services['nowhere']).toMatchObject({ network: { allow: [], deny: ['0.0.0.0/0', '::/0'] } })
  expect(services['host']).toMatchObject({ external: { address: 'unix:/run/host.sock' } })
  const control = services['control']
  const bindings = control !== undefined && 'worker' in control ? control.worker?.bindings : undefined
  for (const slot of [0, 1]) {
    expect(services[`slot-${slot}`]).toMatchObject({ external: { address: `unix:/run/slots/${slot}` } })
    expect(bindings).toContainEqual({ name: `SLOT_${slot}`, service: { name: `slot-${slot}` } })
  }
  expect(Object.keys(services).sort()).toEqual(['control', 'host', 'nowhere', 'objects', 'slot-0', 'slot-1'])
})

test('no WebSocket of control is compressed (threat T29)', () => {
  const control = CONFIG.services?.find(({ name }) => name === 'control')
  expect(control).toMatchObject({ worker: { compatibilityFlags: ['no_web_socket_compression'] } })
})
