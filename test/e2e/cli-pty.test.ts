import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, isAlive } from '@sandwire/testing'
import { openTarget, type Target } from './cli-runner.ts'
import { openTerminal, type TerminalProgram } from './support/terminal.ts'

/** A bash without settings, with a unique prompt. */
const SHELL = ['--', 'bash', '--norc', '--noprofile', '-i'] as const
const PROMPT = 'P$ '
const ENV = ['--env', `PS1=${PROMPT}`] as const

const ESCAPE = '\x1d'

describe('sbx-stdio in a terminal', () => {
  let target: Target

  beforeAll(async () => {
    target = await openTarget()
  })

  afterAll(() => target[Symbol.asyncDispose]())

  const open = (
    options: readonly string[],
    via: 'direct' | 'proxy' = 'direct',
    size = { cols: 80, rows: 24 },
  ) =>
    openTerminal({
      argv: [...target.argv(via), ...options] as [string, ...string[]],
      env: { SBX_TOKEN: undefined },
      ...size,
    })

  const openShell = async (via: 'direct' | 'proxy' = 'direct', options: readonly string[] = []) => {
    const terminal = open([...options, ...ENV, ...SHELL], via)
    await terminal.waitFor(PROMPT)
    return terminal
  }

  const sh = (script: string) => ['--', 'bash', '-c', script]

  /** The newest session with an attachment. */
  async function newestSession(): Promise<string> {
    const { sessions } = (await (await target.sandboxd.fetch('/sessions')).json()) as {
      sessions: { id: string; state: string; attachments: number }[]
    }
    const running = sessions.filter(({ state, attachments }) => state === 'running' && attachments > 0)
    return running.at(-1)?.id ?? ''
  }

  /** Detaches, and returns the command line that the CLI prints. */
  async function detach(terminal: TerminalProgram): Promise<string[]> {
    terminal.send(ESCAPE)
    expect(await terminal.exit).toEqual({ code: 0, signal: null })
    const line = /\nnpx sbx-stdio (http[^\r\n]*)/.exec(terminal.rawOutput())?.[1] ?? ''
    return [...target.argv().slice(0, 2), ...line.split(' ')]
  }

  test('is a real terminal for the remote: size, type, no extra echo, exit code', async () => {
    await using terminal = open(sh('stty size; echo $TERM; tty | cut -c1-9; exit 5'), 'direct', {
      cols: 100,
      rows: 30,
    })
    expect(await terminal.exit).toEqual({ code: 5, signal: null })
    expect(terminal.rawOutput().replace('\x1b[0m', '')).toBe('30 100\r\nxterm-256color\r\n/dev/pts/\r\n')
  })

  test('restores the terminal after a normal end', async () => {
    await using terminal = open(sh('echo ready; read line'))
    const before = terminal.modes()
    await terminal.waitFor('ready')
    await eventually(() => terminal.modes().isRaw, { what: 'raw mode' })
    terminal.send('\r')
    await terminal.exit
    expect(terminal.modes()).toEqual(before)
  })

  test('passes output through untouched: a bare line feed stays one', async () => {
    await using terminal = open(sh("stty -opost; printf 'a\\nb\\r\\nc'"))
    await terminal.exit
    expect(terminal.rawOutput().replace('\x1b[0m', '')).toBe('a\nb\r\nc')
  })

  test('sends Ctrl-C, Ctrl-Z and Ctrl-\\ as keys', async () => {
    await using terminal = await openShell()
    // The echo shows that the command, not the shell that starts it, is in the foreground.
    terminal.send('sh -c \'echo u""p; exec sleep 100\'\r')
    await terminal.waitFor('up\r\n')
    terminal.send('\x03')
    await terminal.waitFor(PROMPT)
    terminal.send('echo rc=$?\r')
    await terminal.waitFor('rc=130')
    terminal.send('stty raw -echo; echo ra""w; head -c 3 | od -An -tx1; stty sane\r')
    await terminal.waitFor('raw\n')
    terminal.send('\x03\x1a\x1c')
    await terminal.waitFor('03 1a 1c')
    terminal.send('exit 4\r')
    expect(await terminal.exit).toEqual({ code: 4, signal: null })
  })

  test('sends a new window size', async () => {
    await using terminal = await openShell()
    terminal.resize(91, 33)
    await eventually(
      async () => {
        terminal.send('stty size\r')
        await terminal.waitFor('33 91', 500)
        return true
      },
      { what: 'the new size' },
    )
  })

  test('draws on the screen like a local program', async () => {
    await using terminal = open(sh("printf '\\033[2J\\033[3;4Hhere'; read line"))
    await terminal.waitFor('here')
    expect(await terminal.screen()).toBe('\n\n   here')
  })

  describe('detaching', () => {
    test('works at any position in a chunk: bytes before the key are sent, bytes after it are not', async () => {
      await using terminal = await openShell()
      terminal.send(`echo A; touch before\r${ESCAPE}touch behind\r`)
      expect(await terminal.exit).toEqual({ code: 0, signal: null })
      const has = (name: string) => Bun.file(`${target.sandboxd.workspace}/${name}`).exists()
      await eventually(() => has('before'), { what: 'what stood before the key' })
      expect(await has('behind')).toBe(false)
      expect(terminal.rawOutput()).toMatch(
        /sbx-stdio: detached; the session is kept for 60 s, reattach with:\r\nnpx sbx-stdio http/,
      )
    })

    test('keeps the session; --session restores its screen, and gets its exit code', async () => {
      await using first = await openShell()
      first.send('echo remember-$((40+2))\r')
      await first.waitFor('remember-42')
      await first.waitFor(PROMPT)
      const reattach = await detach(first)
      await using second = openTerminal({ argv: reattach as [string, ...string[]] })
      await second.waitFor('remember-42')
      second.send('echo again; exit 6\r')
      expect(await second.exit).toEqual({ code: 6, signal: null })
      expect(await second.screen()).toContain(
        `${PROMPT}echo remember-$((40+2))\nremember-42\n${PROMPT}echo again; exit 6\nagain`,
      )
    })

    test('resets the modes of a full-screen program', async () => {
      const on = '\\033[?1049h\\033[?1000h\\033[?1006h\\033[?2004h\\033[?25l\\033[?1h\\033='
      await using terminal = open(sh(`printf '${on}full'; sleep 100`))
      const before = terminal.modes()
      await terminal.waitFor('full')
      await detach(terminal)
      const output = terminal.rawOutput()
      for (const off of [
        '\x1b[?1049l',
        '\x1b[?1000l',
        '\x1b[?1006l',
        '\x1b[?2004l',
        '\x1b[?25h',
        '\x1b[?1l',
        '\x1b>',
      ])
        expect(output.lastIndexOf(off)).toBeGreaterThan(output.indexOf('full'))
      expect(await terminal.screen()).not.toContain('full')
      expect(terminal.modes()).toEqual(before)
    })

    test('can use another key, or none', async () => {
      const hex = sh('stty raw -echo; echo ready; head -c 1 | od -An -tx1; read line')
      await using other = open(['--escape', '^a', ...hex])
      await other.waitFor('ready')
      other.send(ESCAPE)
      await other.waitFor('1d')
      other.send('\x01')
      expect(await other.exit).toEqual({ code: 0, signal: null })
      await using none = open(['--escape', 'none', ...hex])
      await none.waitFor('ready')
      none.send(ESCAPE)
      await none.waitFor('1d')
      none.send('\n')
      expect(await none.exit).toEqual({ code: 0, signal: null })
    })

    test.each(['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'] as const)(
      'is done by %s, after restoring the terminal',
      async (signal) => {
        await using terminal = await openShell()
        const raw = terminal.modes()
        expect(raw.isRaw).toBe(true)
        process.kill(terminal.pid, signal)
        const codes = { SIGTERM: 143, SIGHUP: 129, SIGINT: 130, SIGQUIT: 131 }
        expect(await terminal.exit).toEqual({ code: codes[signal], signal: null })
        expect(terminal.modes()).toMatchObject({ isCanonical: true, hasEcho: true, hasSignals: true })
        expect(terminal.rawOutput()).toContain('--session')
      },
    )

    test('prints nothing with --quiet', async () => {
      await using terminal = await openShell('direct', ['--quiet'])
      terminal.send(ESCAPE)
      await terminal.exit
      expect(terminal.rawOutput()).not.toContain('sbx-stdio')
    })
  })

  describe('a disconnect', () => {
    test('during a flood does not change the screen', async () => {
      target.proxy.disconnectAfterBytes('toClient', 60_000)
      target.proxy.disconnectAfterBytes('toClient', 200_000)
      await using terminal = open(sh('seq 1 100000'), 'proxy')
      expect(await terminal.exit).toEqual({ code: 0, signal: null })
      const expected = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\r\n`).join('')
      expect(terminal.rawOutput().replace('\x1b[0m', '') === expected).toBe(true)
    })

    test('that lasts is shown in one line and cleared; typed keys arrive', async () => {
      await using terminal = await openShell('proxy')
      terminal.send('echo one\r')
      await terminal.waitFor(PROMPT)
      const before = await terminal.screen()
      target.proxy.setFaults({ newConnections: 'refuse' })
      target.proxy.disconnectAll('reset')
      await terminal.waitFor(/connection lost, reconnecting in \d+ s \(Ctrl\+\] to detach\)/)
      const shown = (await terminal.screen()).split('\n')
      expect(shown.slice(0, -1).map((line) => line.trimEnd())).toEqual(before.split('\n'))
      terminal.send('echo typed-while-down\r')
      target.proxy.setFaults({ newConnections: 'accept' })
      await terminal.waitFor('typed-while-down\r\n')
      await eventually(async () => !(await terminal.screen()).includes('connection lost'), {
        what: 'the line to go',
      })
      terminal.send('exit 8\r')
      expect(await terminal.exit).toEqual({ code: 8, signal: null })
      expect(await terminal.screen()).not.toContain('sbx-stdio:')
    })

    test('can be ended with the escape key', async () => {
      await using terminal = await openShell('proxy')
      target.proxy.setFaults({ newConnections: 'refuse' })
      target.proxy.disconnectAll('reset')
      await terminal.waitFor('connection lost')
      terminal.send(ESCAPE)
      expect(await terminal.exit).toEqual({ code: 0, signal: null })
      target.proxy.setFaults({ newConnections: 'accept' })
      expect(await terminal.screen()).toContain('detached')
    })
  })

  test('an unreachable server is 255, one line and a hint; the terminal is restored', async () => {
    await using doomed = await openTarget()
    const argv = [...doomed.argv(), '--retry-for', '1', ...ENV, ...SHELL] as [string, ...string[]]
    await using terminal = openTerminal({ argv })
    const before = terminal.modes()
    await terminal.waitFor(PROMPT)
    doomed.sandboxd.kill('SIGKILL')
    expect(await terminal.exit).toEqual({ code: 255, signal: null })
    expect(terminal.modes()).toEqual(before)
    const screen = await terminal.screen()
    expect(screen.match(/sbx-stdio: Connection lost/g)).toHaveLength(1)
    expect(screen).toContain('\nhint: npx sbx-stdio http')
    expect(screen).not.toContain('    at ')
  })

  test('a stopping sandbox is reported with a hint; the terminal is restored', async () => {
    await using doomed = await openTarget()
    const argv = [...doomed.argv(), '--sandbox', 'dev', ...ENV, ...SHELL] as [string, ...string[]]
    await using terminal = openTerminal({ argv, cols: 200 })
    const before = terminal.modes()
    await terminal.waitFor(PROMPT)
    doomed.sandboxd.kill('SIGTERM')
    expect((await terminal.exit).code).toBe(129)
    expect(terminal.modes()).toEqual(before)
    expect(await terminal.screen()).toMatch(
      /\nsbx-stdio: The sandbox is stopping: .*\nhint: start it again: npx sbx-stdio start dev --url http/,
    )
  })

  test('--pin keeps the sandbox running, also after a reconnect', async () => {
    await using terminal = open(['--pin', ...ENV, ...SHELL], 'proxy')
    await terminal.waitFor(PROMPT)
    const pinned = async (): Promise<unknown> => {
      const { sessions } = (await (await target.sandboxd.fetch('/activity')).json()) as {
        sessions: { running: boolean; pinned: boolean }[]
      }
      return sessions.filter(({ running }) => running).map((session) => session.pinned)
    }
    expect(await pinned()).toContain(true)
    target.proxy.disconnectAll('reset')
    terminal.send('echo a""gain\r')
    await terminal.waitFor('again')
    terminal.send('exit\r')
    expect(await terminal.exit).toEqual({ code: 0, signal: null })
  })

  test('a crash of the CLI is one line and a hint, and restores the terminal', async () => {
    const [bun, ...rest] = target.argv()
    const fault = `${target.sandboxd.workspace}/fault.ts`
    await Bun.write(fault, "process.on('SIGUSR2', () => { throw new Error('boom') })")
    await using terminal = openTerminal({ argv: [bun, '--preload', fault, ...rest, ...ENV, ...SHELL] })
    const before = terminal.modes()
    await terminal.waitFor(PROMPT)
    expect(terminal.modes().isRaw).toBe(true)
    process.kill(terminal.pid, 'SIGUSR2')
    expect(await terminal.exit).toEqual({ code: 255, signal: null })
    expect(terminal.modes()).toEqual(before)
    expect(await terminal.screen()).toMatch(/sbx-stdio: Internal error: boom\nhint: [^\n]*$/)
  })

  test('a command that does not exist is 127, and leaves the terminal as it was', async () => {
    await using terminal = open(['--', 'no-such-command'])
    const before = terminal.modes()
    expect(await terminal.exit).toEqual({ code: 127, signal: null })
    expect(terminal.modes()).toEqual(before)
    expect(await terminal.screen()).toMatch(/sbx-stdio: .*no-such-command.*\nhint: /)
  })

  test('wrong usage is 2 before the terminal is changed', async () => {
    await using terminal = open(['--bogus'])
    expect(await terminal.exit).toEqual({ code: 2, signal: null })
    expect(await terminal.screen()).toBe('sbx-stdio: Unknown option "--bogus"\nhint: npx sbx-stdio --help')
  })

  test('Ctrl-C exits while connecting', async () => {
    target.proxy.setFaults({ newConnections: 'hold' })
    await using terminal = open([...SHELL], 'proxy')
    await terminal.waitFor('connecting to')
    terminal.send('\x03')
    expect((await terminal.exit).code).toBe(130)
    target.proxy.setFaults({ newConnections: 'accept' })
    expect(terminal.modes().isCanonical).toBe(true)
  })

  test('a viewer sees output, is notified once that it cannot type, and detaches', async () => {
    await using driver = await openShell()
    const session = await newestSession()
    await using viewer = open(['--session', session, '--role', 'viewer'])
    await viewer.waitFor(PROMPT.trim())
    viewer.send('touch by-viewer\r')
    await viewer.waitFor(/read-only: you are watching \(Ctrl\+\] to detach\)/)
    viewer.send('touch by-viewer\r')
    driver.send('echo from-driver\r')
    await viewer.waitFor('from-driver\r\n')
    viewer.send(ESCAPE)
    expect(await viewer.exit).toEqual({ code: 0, signal: null })
    expect(viewer.rawOutput().split('read-only').length).toBe(2)
    driver.send('ls; echo li""sted\r')
    await driver.waitFor('listed')
    expect(driver.rawOutput()).not.toContain('by-viewer')
    driver.send('exit\r')
    await driver.exit
  })

  describe('a viewer whose terminal is smaller than the session', () => {
    const LARGE = { cols: 120, rows: 40 }
    const SMALL = { cols: 80, rows: 24 }

    /** A session of 120x40 and who watches it from 80x24. */
    async function watch(script: string): Promise<{ driver: TerminalProgram; viewer: TerminalProgram }> {
      const driver = open(
        ['--keep', '0', '--', 'bash', '--norc', '--noprofile', '-c', script],
        'direct',
        LARGE,
      )
      await driver.waitFor('<ready>')
      const viewer = open(['--session', await newestSession(), '--role', 'viewer'], 'direct', SMALL)
      await viewer.waitFor('<ready>')
      return { driver, viewer }
    }

    /** The screen without the notice about its size. */
    const shown = async (terminal: TerminalProgram) =>
      (await terminal.screen()).replace(/\nsbx-stdio: the session is [^\n]*/, '')

    test('is notified, and sees output at the right position', async () => {
      const { driver, viewer } = await watch("seq 1 5; printf '<ready>'; read line; seq 6 50; read line")
      await using _driver = driver
      await using _viewer = viewer
      await viewer.waitFor('the session is 120x40, this terminal is 80x24')
      expect(await shown(viewer)).toBe('1\n2\n3\n4\n5\n<ready>')
      driver.send('typed\r')
      await viewer.waitFor('50\r\n')
      const rows = Array.from({ length: 23 }, (_, at) => String(28 + at))
      expect(await shown(viewer)).toBe(rows.join('\n'))
    })

    test('sees the last rows of a full screen', async () => {
      const { driver, viewer } = await watch("seq 1 100; printf '<ready>'; read line")
      await using _driver = driver
      await using _viewer = viewer
      const rows = Array.from({ length: 23 }, (_, at) => String(78 + at))
      await viewer.waitFor('the session is')
      expect((await shown(viewer)).split('\n').slice(-23)).toEqual([...rows.slice(1), '<ready>'])
    })

    test('sees the upper part of a full-screen program at the right rows', async () => {
      const rows = "for row in $(seq 1 40); do printf '\\033[%d;1Hrow %d' $row $row; done"
      const { driver, viewer } = await watch(
        `printf '\\033[?1049h'; ${rows}; printf '\\033[3;20H<ready>'; read line; printf '\\033[5;1Hchanged'; read line`,
      )
      await using _driver = driver
      await using _viewer = viewer
      const before = (await shown(viewer)).split('\n')
      expect(before.slice(0, 4)).toEqual(['row 1', 'row 2', 'row 3              <ready>', 'row 4'])
      driver.send('\r')
      await viewer.waitFor('changed')
      expect((await shown(viewer)).split('\n').slice(3, 6)).toEqual(['row 4', 'changed', 'row 6'])
    })

    test('and narrower sees long lines wrapped', async () => {
      const { driver, viewer } = await watch(
        `printf 'x%.0s' $(seq 1 100); echo; printf 'y%.0s' $(seq 1 90); printf '<ready>'; read line; printf z; read line`,
      )
      await using _driver = driver
      await using _viewer = viewer
      driver.send('\r')
      await viewer.waitFor('z')
      const [x, y] = ['x', 'y'].map((letter) => letter.repeat(80))
      expect(await shown(viewer)).toBe(`${x}\n${'x'.repeat(20)}\n${y}\n${'y'.repeat(10)}<ready>\nz`)
    })
  })

  test('--take takes over, and the other client is notified', async () => {
    await using first = await openShell()
    const session = await newestSession()
    await using second = open(['--session', session])
    await second.waitFor('another client is the driver')
    second.send(ESCAPE)
    await second.exit
    await using third = open(['--session', session, '--take'])
    await first.waitFor('another client is the driver')
    third.send('exit 5\r')
    expect(await third.exit).toEqual({ code: 5, signal: null })
    expect(await first.exit).toEqual({ code: 5, signal: null })
  })

  test('a closed window detaches; the session continues', async () => {
    const terminal = await openShell()
    terminal.send('sleep 1000 & echo pid=$!\r')
    const pid = Number(/pid=(\d+)/.exec(await terminal.waitFor(/pid=\d+/))?.[1])
    process.kill(terminal.pid, 'SIGHUP')
    await terminal.exit
    expect(isAlive(pid)).toBe(true)
    await terminal[Symbol.asyncDispose]()
  })

  test('--no-tty gives pipes even here; --tty gives a terminal even to a pipe', async () => {
    await using pipes = open(['--no-tty', ...sh('tty; exit 3')])
    expect(await pipes.exit).toEqual({ code: 3, signal: null })
    expect(pipes.rawOutput()).toContain('not a tty')
    const argv = [...target.argv(), '--tty', ...sh('tty | cut -c1-9; cat; echo end')]
    const child = Bun.spawn(argv, { stdin: new Blob(['typed\n']), stdout: 'pipe', stderr: 'pipe' })
    const output = await new Response(child.stdout).text()
    await child.exited
    expect(output).toContain('/dev/pts/')
    expect(output).toContain('end')
    expect(child.exitCode).toBe(0)
  })
})
