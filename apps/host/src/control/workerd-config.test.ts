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

test('control reaches the host by its socket, loopback, and nothing else', () => {
  const services = Object.fromEntries((CONFIG.services ?? []).map((service) => [service.name, service]))
  expect(services['control']).toMatchObject({ worker: { globalOutbound: { name: 'loopback' } } })
  expect(services['loopback']).toEqual({ name: 'loopback', network: { allow: ['127.0.0.1/32'] } })
  expect(services['host']).toMatchObject({ external: { address: 'unix:/run/host.sock' } })
  expect(Object.keys(services).sort()).toEqual(['control', 'host', 'loopback', 'objects'])
})

test('no WebSocket of control is compressed (threat T29)', () => {
  const control = CONFIG.services?.find(({ name }) => name === 'control')
  expect(control).toMatchObject({ worker: { compatibilityFlags: ['no_web_socket_compression'] } })
})
