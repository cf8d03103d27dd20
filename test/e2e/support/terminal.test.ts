import { describe, expect, test } from 'bun:test'
import { eventually, isAlive, readProcessCounts, rejectionOf } from '@sandwire/testing'
import { openTerminal } from './terminal.ts'

const sh = (script: string) => ({ argv: ['sh', '-c', script] as const })

describe('openTerminal', () => {
  test('gives the program a controlling terminal of the given size', async () => {
    await using terminal = openTerminal({
      ...sh('tty; stty size < /dev/tty; echo $TERM'),
      cols: 100,
      rows: 30,
    })
    expect(await terminal.exit).toEqual({ code: 0, signal: null })
    expect(terminal.rawOutput()).toBe(`${terminal.device}\r\n30 100\r\nxterm-256color\r\n`)
  })

  test('has every byte when the program has exited', async () => {
    for (let round = 0; round < 20; round++) {
      await using terminal = openTerminal(sh('seq 1 5000'))
      await terminal.exit
      expect(terminal.rawOutput()).toHaveLength(28_893)
    }
  })

  test('types, waits for output in order and reports the exit code', async () => {
    await using terminal = openTerminal(
      sh('while read line; do echo "<$line>"; [ "$line" = bye ] && exit 7; done'),
    )
    terminal.send('one\n')
    expect(await terminal.waitFor(/<o\w+>/)).toBe('<one>')
    terminal.send('one\n')
    await terminal.waitFor('<one>')
    terminal.send('bye\n')
    expect(await terminal.exit).toEqual({ code: 7, signal: null })
  })

  test('sends signals from keys', async () => {
    await using terminal = openTerminal(sh('echo ready; exec cat'))
    await terminal.waitFor('ready')
    terminal.send('\x03')
    expect(await terminal.exit).toEqual({ code: null, signal: 'SIGINT' })
  })

  test('renders the screen', async () => {
    await using terminal = openTerminal(sh("printf 'abc\\033[1;1HX\\033[3;5Hlow\\033[2J\\033[2;3Hshown'"))
    await terminal.exit
    expect(await terminal.screen()).toBe('\n  shown')
  })

  test('answers terminal queries of the program', async () => {
    await using terminal = openTerminal(
      sh("stty raw -echo; printf '\\033[5;7H\\033[6n'; head -c 6 | od -c; stty sane"),
    )
    await terminal.exit
    expect(terminal.rawOutput()).toContain('033   [   5   ;   7   R')
  })

  test('notifies the program of a new size', async () => {
    await using terminal = openTerminal(
      sh("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done"),
    )
    await terminal.waitFor('ready')
    terminal.resize(90, 20)
    await terminal.waitFor('20 90')
  })

  test('distinguishes raw from cooked mode, and detects whether it was restored', async () => {
    await using terminal = openTerminal(
      sh('old=$(stty -g); read a; stty raw -echo; echo raw; head -c 1; stty $old; echo cooked; read b'),
    )
    const before = terminal.modes()
    expect(before).toMatchObject({ isRaw: false, isCanonical: true, hasEcho: true, hasSignals: true })
    terminal.send('\n')
    await terminal.waitFor('raw')
    expect(terminal.modes()).toMatchObject({
      isRaw: true,
      isCanonical: false,
      hasEcho: false,
      hasSignals: false,
    })
    terminal.send('x')
    await terminal.waitFor('cooked')
    expect(terminal.modes()).toEqual(before)
  })

  test('shows after the exit what the program did not restore', async () => {
    await using terminal = openTerminal(sh('stty raw -echo'))
    await terminal.exit
    expect(terminal.modes().isRaw).toBe(true)
  })

  test('reports the screen when the expected text does not arrive', async () => {
    await using terminal = openTerminal(sh('echo something else; read forever'))
    await terminal.waitFor('else')
    expect((await rejectionOf(terminal.waitFor('hello', 20))).message).toContain(
      'Cannot find "hello" in the terminal: 20 ms passed; the screen shows:\nsomething else',
    )
    terminal.send('\n')
    expect((await rejectionOf(terminal.waitFor('hello'))).message).toContain('program ended')
  })

  test('ends the program and closes every descriptor', async () => {
    const before = readProcessCounts(process.pid).fds
    const terminal = openTerminal(sh("trap '' HUP TERM; echo ready; while :; do sleep 0.01; done"))
    await terminal.waitFor('ready')
    await terminal[Symbol.asyncDispose]()
    expect(isAlive(terminal.pid)).toBe(false)
    await eventually(() => readProcessCounts(process.pid).fds <= before, { what: 'descriptors to be closed' })
  })
})
