import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type CliRun, runCli } from './cli-runner.ts'
import { type RunningHost, startHost } from './support/control.ts'

const MAIN = resolve(import.meta.dir, '../../apps/cli/src/main.ts')
const TIMEOUT_MS = 120_000

let host: RunningHost
let here: string

beforeAll(async () => {
  host = await startHost()
  here = mkdtempSync(join(tmpdir(), 'cli-copy-host-'))
}, TIMEOUT_MS)
afterAll(async () => {
  rmSync(here, { recursive: true, force: true })
  await host.stop()
}, TIMEOUT_MS)

function cli(...words: string[]): Promise<CliRun> {
  return runCli([process.execPath, MAIN, ...words, '--url', host.url], { env: { SBX_TOKEN: host.token } })
}

function factsOf(folder: string): string {
  const find = ['find', '.', '-mindepth', '1', '-printf', '%P\\t%y%m\\t%TY-%Tm-%Td %TT\\t%l\\0']
  return Bun.spawnSync(find, { cwd: folder }).stdout.toString('latin1').split('\0').toSorted().join('\n')
}

test(
  'files and folders go to a sandbox of a real server and back',
  async () => {
    const tree = join(here, 'tree')
    mkdirSync(join(tree, 'sub/empty'), { recursive: true })
    writeFileSync(join(tree, 'sub/run'), '#!/bin/sh\necho ran\n')
    chmodSync(join(tree, 'sub/run'), 0o755)
    writeFileSync(Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0x0a, 0x62])]), 'odd')
    writeFileSync(join(tree, 'large'), Buffer.alloc(20_000_000, 'large '))
    symlinkSync('../large', join(tree, 'sub/link'))
    for (const path of ['sub/run', 'large', 'sub/empty', 'sub', ''])
      utimesSync(join(tree, path), 1_600_000_000, 1_600_000_000)
    expect((await cli('create', 'box', '--no-start')).code).toBe(0)

    const up = await cli('cp', tree, 'box:')
    expect([up.stderr, up.code]).toEqual(['sbx-stdio: starting box\n', 0])
    const listed = await cli('ls', 'box:tree/sub')
    expect([listed.stdout.toString(), listed.code]).toEqual(['empty\nlink\nrun\n', 0])
    const ran = await runInside(
      'sh',
      '-c',
      'tree/sub/run; id -u; stat -c %u tree/large; wc -c < tree/sub/link',
    )
    const [said, uid, owner, size] = ran.stdout.toString().trim().split('\n')
    expect([said, owner === uid, size]).toEqual(['ran', true, '20000000'])

    const down = await cli('cp', 'box:tree', join(here, 'back'))
    expect([down.stderr, down.code]).toEqual(['', 0])
    expect(Bun.spawnSync(['diff', '-r', tree, join(here, 'back')]).stdout.toString()).toBe('')
    expect(factsOf(join(here, 'back')).replaceAll(/\.[0-9]+/g, '')).toBe(
      factsOf(tree).replaceAll(/\.[0-9]+/g, ''),
    )
    // Once more, into folders that are as they were copied.
    chmodSync(join(tree, 'sub'), 0o555)
    expect((await cli('cp', `${tree}/.`, 'box:tree')).code).toBe(0)
    writeFileSync(join(tree, 'sub/run'), 'other')
    expect((await cli('cp', `${tree}/.`, 'box:tree')).code).toBe(0)
    const seen = await runInside('sh', '-c', 'cat tree/sub/run; stat -c %a tree/sub')
    expect(seen.stdout.toString()).toBe('other555\n')
    const missing = await cli('cp', 'box:nothing', here)
    expect([missing.stderr.split('\n')[0], missing.code]).toEqual([
      'sbx-stdio: Cannot copy "nothing": no such file in the sandbox',
      2,
    ])
    expect((await cli('ls', 'nowhere:')).stderr.split('\n')[0]).toContain('sandbox')
  },
  TIMEOUT_MS,
)

/** Runs something in the sandbox. */
function runInside(...command: string[]): Promise<CliRun> {
  return runCli([process.execPath, MAIN, host.url, '--sandbox', 'box', '--', ...command], {
    env: { SBX_TOKEN: host.token },
  })
}
