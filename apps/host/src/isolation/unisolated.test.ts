import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { INSIDE, type Isolation, type LaunchPlan } from './isolation.ts'
import { findProcess } from './process-table.ts'
import { createUnisolated } from './unisolated.ts'

/** Prints its listening address and the pid of its child, which does not end by itself. */
const DAEMON = `trap 'exit 0' TERM
sh -c 'trap "" TERM HUP; while :; do sleep 1; done' &
echo "$2 $!"
wait
`

const PLAN: LaunchPlan = {
  id: 'a',
  name: 'dev',
  limits: DEFAULT_SANDBOX_LIMITS,
  daemonArgs: ['--listen', `unix:${INSIDE.daemonSocket}`],
  publicKey: 'key',
  hasEgress: false,
}

describe('a sandbox without isolation', () => {
  let root = ''
  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), 'unisolated-'))
    mkdirSync(path.join(root, 'code'))
    writeFileSync(path.join(root, 'code/daemon.sh'), DAEMON)
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const open = (): Isolation =>
    createUnisolated({
      dataFolder: path.join(root, 'data'),
      runBase: path.join(root, 'run'),
      program: { executable: '/bin/sh', code: { folder: path.join(root, 'code'), entry: 'daemon.sh' } },
      isRoot: false,
    })

  test('launches with system tools, regardless of PATH', async () => {
    writeFileSync(path.join(root, 'code/daemon.sh'), 'echo "$PATH"')
    const isolation = open()
    await isolation.prepare(PLAN)
    const before = process.env['PATH']
    process.env['PATH'] = '/nowhere'
    try {
      const launched = await isolation.launch(PLAN)
      expect(await new Response(launched.stdout).text()).toBe('/nowhere\n')
      expect(await launched.ended).toBe('exit_0')
    } finally {
      process.env['PATH'] = before
      await isolation.remove(PLAN.id)
    }
  })

  test('has its own folders, ends all its processes, and keeps files until removed', async () => {
    const isolation = open()
    expect(isolation.weaknesses.join()).toContain('no isolation')
    const outside = await isolation.prepare({ id: 'a', limits: DEFAULT_SANDBOX_LIMITS })
    writeFileSync(path.join(outside.workspace, 'file'), 'kept')
    const launched = await isolation.launch(PLAN)
    const { value } = await launched.stdout.getReader().read()
    const [socket, child] = new TextDecoder().decode(value).trim().split(' ')
    expect(socket).toBe(`unix:${outside.daemonSocket}`)
    expect(readFileSync(path.join(path.dirname(outside.daemonSocket), 'public-key'), 'utf8')).toBe('key')
    await launched.stop(2_000)
    expect(await launched.ended).toBe('exit_0')
    expect(findProcess(Number(child))?.isZombie ?? true).toBe(true)
    expect(readFileSync(path.join(outside.workspace, 'file'), 'utf8')).toBe('kept')
    await isolation.remove('a')
    expect(existsSync(outside.workspace)).toBe(false)
    await isolation.remove('a')
  })
})
