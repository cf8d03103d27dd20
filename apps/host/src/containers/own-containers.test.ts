import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { OwnContainers } from './own-containers.ts'

const MINE = 'a'.repeat(64)
const ALSO_MINE = 'b'.repeat(64)
const FOREIGN = 'c'.repeat(64)
let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sandwire-own-'))
  for (const id of [MINE, ALSO_MINE]) writeFileSync(path.join(folder, `${id}.sqlite`), '')
})
afterEach(() => rmSync(folder, { recursive: true }))

function engineOf(containers: Record<string, boolean>) {
  const calls: string[] = []
  return {
    calls,
    list: async () =>
      Object.entries(containers).map(([name, isRunning]) => ({ name, isRunning, address: '', command: '' })),
    stop: async (name: string) => void calls.push(`stop ${name}`),
    remove: async (name: string) => void calls.push(`remove ${name}`),
  }
}

test('ignores containers of other data folders and those that are no sandbox', async () => {
  const engine = engineOf({
    [`workerd-sandbox-${FOREIGN}`]: true,
    [`workerd-sandbox-${FOREIGN}-proxy`]: true,
    [`my-workerd-sandbox-${MINE}`]: true,
    [`workerd-other-${MINE}`]: true,
  })
  const own = new OwnContainers(engine, folder)
  expect(await own.adopt()).toBe(0)
  await own.end()
  expect(engine.calls).toEqual([])
})

test('adopts running containers, and removes ended ones with their proxy', async () => {
  const engine = engineOf({
    [`workerd-sandbox-${MINE}`]: true,
    [`workerd-sandbox-${MINE}-proxy`]: true,
    [`workerd-sandbox-${ALSO_MINE}`]: false,
    [`workerd-sandbox-${ALSO_MINE}-proxy`]: true,
  })
  expect(await new OwnContainers(engine, folder).adopt()).toBe(1)
  expect(engine.calls).toEqual([
    `remove workerd-sandbox-${ALSO_MINE}`,
    `remove workerd-sandbox-${ALSO_MINE}-proxy`,
  ])
})

test('stops containers before it removes them', async () => {
  const engine = engineOf({ [`workerd-sandbox-${MINE}-proxy`]: true, [`workerd-sandbox-${MINE}`]: true })
  await new OwnContainers(engine, folder).end()
  expect(engine.calls).toEqual([
    `stop workerd-sandbox-${MINE}`,
    `remove workerd-sandbox-${MINE}-proxy`,
    `remove workerd-sandbox-${MINE}`,
  ])
})

test('sends no request to the engine for a data folder without sandboxes', async () => {
  const engine = { ...engineOf({}), list: () => Promise.reject(new Error('stopRequested')) }
  expect(await new OwnContainers(engine, path.join(folder, 'none')).adopt()).toBe(0)
})
