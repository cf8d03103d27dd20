import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { planSlots, type SlotPlan, Slots, socketsOf } from './slots.ts'

const OWN = process.getuid?.() ?? 0

describe('slots', () => {
  let base = ''
  let plan: SlotPlan
  let slots: Slots
  const servers: Bun.Server<undefined>[] = []
  beforeEach(() => {
    base = mkdtempSync(path.join(tmpdir(), 'slots-'))
    plan = planSlots({ dataFolder: '/data', runBase: path.join(base, 'run') }, 2)
    slots = new Slots(plan)
  })
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop(true)
    rmSync(base, { recursive: true, force: true })
  })

  /** A fake sandboxd that returns its name, in a folder that its sandbox can write to. */
  function listen(name: string): string {
    mkdirSync(path.join(base, name), { recursive: true })
    const socket = path.join(base, name, 'sandboxd.sock')
    servers.push(Bun.serve({ unix: socket, fetch: () => new Response(name) }))
    return socket
  }

  async function requestName(slot: number): Promise<string> {
    const unix = socketsOf(plan)[slot] ?? ''
    const headers = { connection: 'close' }
    return fetch('http://localhost/', { unix, headers }).then(
      (response) => response.text(),
      () => 'unavailable',
    )
  }

  test('lead to their own sandbox, in a private folder', async () => {
    const [a, b] = [slots.publish('a', listen('a'), OWN), slots.publish('b', listen('b'), OWN)]
    expect([a, b]).toEqual([0, 1])
    expect([await requestName(a), await requestName(b)]).toEqual(['a', 'b'])
    expect(statSync(plan.folder).mode & 0o777).toBe(0o700)
  })

  test('lead to the same sandboxd even if its path changes (threat T11)', async () => {
    const socket = listen('a')
    const slot = slots.publish('a', socket, OWN)
    const decoy = listen('decoy')
    renameSync(socket, `${socket}.old`)
    symlinkSync(decoy, socket)
    expect(await requestName(slot)).toBe('a')
    rmSync(socket)
    renameSync(decoy, socket)
    expect(await requestName(slot)).toBe('a')
  })

  test('are refused for a link, a file, or another user’s socket (threat T11)', async () => {
    const decoy = listen('decoy')
    const link = path.join(base, 'link')
    symlinkSync(decoy, link)
    for (const path of [link, import.meta.path, base]) expect(() => slots.publish('a', path, OWN)).toThrow()
    expect(() => slots.publish('a', decoy, OWN + 1)).toThrow('not a socket of sandboxd')
    if (OWN === 0) {
      chownSync(decoy, 1, 1)
      expect(() => slots.publish('a', decoy, OWN)).toThrow()
      expect(await requestName(slots.publish('a', decoy, 1))).toBe('decoy')
    } else expect(await requestName(0)).toBe('unavailable')
  })

  test('stay free when a socket is refused', () => {
    for (const name of ['x', 'y']) expect(() => slots.publish(name, import.meta.path, OWN)).toThrow()
    expect([slots.publish('a', listen('a'), OWN), slots.publish('b', listen('b'), OWN)]).toEqual([0, 1])
  })

  test('are free after their release', async () => {
    const socket = listen('a')
    slots.publish('a', socket, OWN)
    slots.publish('b', listen('b'), OWN)
    expect(() => slots.publish('c', listen('c'), OWN)).toThrow('all slots are in use')
    slots.release('a')
    slots.release('a')
    expect(await requestName(0)).toBe('unavailable')
    expect(slots.publish('c', listen('c2'), OWN)).toBe(0)
    expect(await requestName(0)).toBe('c2')
  })

  test('of a dead supervisor lead to the restarted sandbox', async () => {
    slots.publish('a', listen('a'), OWN)
    expect(new Slots(plan).publish('a', listen('again'), OWN)).toBe(0)
    expect(await requestName(0)).toBe('again')
  })

  test('leave no folder when none is in use', () => {
    slots.publish('a', listen('a'), OWN)
    slots.removeIfEmpty()
    expect(existsSync(plan.folder)).toBe(true)
    slots.release('a')
    slots.removeIfEmpty()
    expect(existsSync(plan.folder)).toBe(false)
    expect(slots.publish('a', listen('a2'), OWN)).toBe(0)
  })

  test('include those of sandboxes that outlived a host with more slots', () => {
    slots.publish('a', listen('a'), OWN)
    slots.publish('b', listen('b'), OWN)
    slots.release('a')
    const place = { dataFolder: '/data', runBase: path.join(base, 'run') }
    expect(planSlots(place, 1).count).toBe(2)
    slots.release('b')
    expect(planSlots(place, 1).count).toBe(1)
  })

  test('differ between data folders', () => {
    const [one, two] = ['/a', '/b'].map((dataFolder) => planSlots({ dataFolder, runBase: '/run' }, 1).folder)
    expect(one).not.toBe(two)
  })
})
