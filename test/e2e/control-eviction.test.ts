import { expect, test } from 'bun:test'
import { OPCODE } from '@sandwire/testing'
import { startControl } from '../../apps/control/test/support/control.ts'
import { upgrade } from '../../apps/control/test/support/handshake.ts'
import { FakeSandboxes } from '../../apps/control/test/support/fake-sandboxes.ts'

/** workerd evicts an object after ten seconds without requests. */
const EVICTION_MS = 12_000

test('a socket survives the eviction of its object, whose state is restored', async () => {
  await using sandboxes = new FakeSandboxes()
  await using control = await startControl({ runner: sandboxes, config: { alarmMs: 60_000 } })
  const objects = (): Promise<number> => control.metric('sandwire_objects_constructed_total{class="sandbox"}')
  const handshake = await upgrade(control, '/attach?sandbox=dev&cmd=cat')
  if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${handshake.kind}`)
  await using socket = handshake.socket
  await socket.nextFrame()
  expect(await objects()).toBe(1)
  await Bun.sleep(EVICTION_MS)

  await socket.sendFrame({ opcode: OPCODE.text, payload: 'still here' })
  expect(new TextDecoder().decode((await socket.nextFrame()).payload)).toBe('still here')
  expect(await objects()).toBe(1)

  const view: unknown = await (await control.fetch('/api/sandboxes/dev')).json()
  expect(view).toMatchObject({ name: 'dev', state: 'running' })
  expect(await objects()).toBe(2)
  expect(sandboxes.starts).toBe(1)
})
