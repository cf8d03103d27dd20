import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, readDescendants } from '@sandwire/testing'
import { runCli } from './cli-runner.ts'
import { runShell } from './support/attached.ts'
import { findStarterProblem } from './support/isolation/isolated.ts'
import { Deployment } from './support/deployment.ts'
import { openTerminal } from './support/terminal.ts'

const problem = process.getuid?.() === 0 ? await findStarterProblem('nobody') : 'not started as root'
if (problem !== undefined) console.error(`deployment as nobody: skipped, ${problem}`)

describe.skipIf(problem !== undefined)('a deployment run by an unprivileged user', () => {
  let deployment: Deployment
  beforeAll(async () => {
    deployment = await Deployment.open({ isNobody: true })
  })
  afterAll(async () => {
    await deployment.clear()
    await deployment.waitUntilGone()
    await deployment[Symbol.asyncDispose]()
  })

  const run = (...args: string[]): [string, ...string[]] => ['env', ...deployment.cli('dev'), ...args]

  test('carries stdin, stdout and stderr separately, with files owned by the sandbox user', async () => {
    const script = 'cat; echo warned >&2; id -u; pwd'
    const { stdout, stderr, code } = await runCli(run('--', 'sh', '-c', script), {
      input: 'typed\n',
      env: deployment.env,
    })
    expect([stdout.toString(), stderr, code]).toEqual(['typed\n1000\n/workspace\n', 'warned\n', 0])
  })

  test.each([
    ['exit 0', 0],
    ['exit 7', 7],
    ['kill -TERM $$', 143],
    ['kill -KILL $$', 137],
  ])('exits with the code of the process: %s', async (script, code) => {
    expect((await runCli(run('--', 'sh', '-c', script), { env: deployment.env })).code).toBe(code)
  })

  test('reports an unknown command', async () => {
    expect((await runCli(run('--cmd', 'no-such-command'), { env: deployment.env })).code).toBe(127)
  })

  test('provides a terminal that resizes, interrupts and is restored', async () => {
    await using terminal = openTerminal({
      argv: run('--cmd', 'bash', '--arg', '--norc'),
      env: deployment.env,
    })
    const before = terminal.modes()
    await terminal.waitFor('$ ')
    terminal.send('stty size; tty\r')
    await terminal.waitFor('24 80')
    await terminal.waitFor('/dev/pts/')
    terminal.resize(100, 30)
    // Quoted, so that the echoed line differs from its output.
    terminal.send(`sh -c 'echo be""gun; exec sleep 1000'\r`)
    await terminal.waitFor('begun')
    terminal.send('\u0003')
    await terminal.waitFor('$ ')
    terminal.send('echo "code $?"; stty size; exit 3\r')
    await terminal.waitFor('code 130')
    await terminal.waitFor('30 100')
    expect(await terminal.exit).toEqual({ code: 3, signal: null })
    expect(terminal.modes()).toEqual(before)
  })

  test('resumes exactly after kills of workerd and of the host', async () => {
    await using client = runShell(
      deployment.sandbox('dev'),
      'while read line; do echo "got $line"; done; exit 7',
    )
    let expected = ''
    const goesOn = async (line: string): Promise<void> => {
      expected += `got ${line}\n`
      await client.send(`${line}\n`)
      await eventually(() => client.text === expected, { what: `"${line}"` })
    }
    await goesOn('one')
    await deployment.killWorkerd()
    await goesOn('two')
    await deployment.killHost()
    await deployment.restart()
    await goesOn('three')
    client.handle.eof()
    expect((await client.exit).code).toBe(7)
    expect(client.text).toBe(expected)
  })

  test('runs every process as that user', async () => {
    await using client = runShell(deployment.sandbox('dev'), 'echo ready; sleep 1000')
    await client.waitFor('ready')
    const { id } = await deployment.describe('dev')
    const roots = [deployment.host.pid, deployment.supervisor(id)]
    const all = [...roots, ...roots.flatMap((root) => readDescendants(root).map(({ pid }) => pid))]
    expect(all.length).toBeGreaterThan(5)
    const owners = Bun.spawnSync(['ps', '-o', 'uid=', '-p', all.join(',')]).stdout.toString()
    expect(new Set(owners.trim().split(/\s+/))).toEqual(new Set(['65534']))
  })
})
