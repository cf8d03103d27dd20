import { eventually } from '@sandwire/testing'
import { expect, test } from 'bun:test'
import { record } from '../processes/recorded-process.fixture.ts'
import { createStartProcess } from '../processes/start-process.ts'
import { pauseProcesses, type ProcessSystem } from './pause-processes.ts'

/** Processes below process 1; signals are recorded and change their state. */
function createSystem(processes: readonly { pid: number; parent: number; state?: string }[]) {
  const states = new Map(processes.map(({ pid, parent, state = 'S' }) => [pid, { pid, parent, state }]))
  const signals: string[] = []
  const system: ProcessSystem = {
    ownPid: 1,
    list: () => [...states.values()].map((each) => ({ ...each })),
    threadStates: (pid) => [states.get(pid)?.state ?? 'X'],
    signal: (pid, signal) => {
      signals.push(`${signal} ${pid}`)
      const found = states.get(pid)
      if (found !== undefined) found.state = signal === 'SIGSTOP' ? 'T' : 'S'
      return found !== undefined
    },
    sleep: () => undefined,
  }
  return { system, signals, states }
}

test('stops every process below this one, and lets children go on before their parents', () => {
  const { system, signals } = createSystem([
    { pid: 2, parent: 1 },
    { pid: 3, parent: 2 },
    { pid: 4, parent: 3 },
    { pid: 9, parent: 0 },
  ])
  const resume = pauseProcesses(system)
  expect(signals).toEqual(['SIGSTOP 2', 'SIGSTOP 3', 'SIGSTOP 4'])
  signals.length = 0
  resume()
  expect(signals).toEqual(['SIGCONT 4', 'SIGCONT 3', 'SIGCONT 2'])
})

test('leaves a process stopped that the user had stopped', () => {
  const { system, signals } = createSystem([
    { pid: 2, parent: 1 },
    { pid: 3, parent: 2, state: 'T' },
    { pid: 4, parent: 2, state: 'Z' },
  ])
  pauseProcesses(system)()
  expect(signals).toEqual(['SIGSTOP 2', 'SIGCONT 2'])
})

test('stops a process that was forked meanwhile', () => {
  const { system, signals, states } = createSystem([{ pid: 2, parent: 1 }])
  const signal = (pid: number, name: 'SIGSTOP' | 'SIGCONT'): boolean => {
    if (name === 'SIGSTOP' && pid === 2) states.set(5, { pid: 5, parent: 2, state: 'R' })
    return system.signal(pid, name)
  }
  pauseProcesses({ ...system, signal })
  expect(signals).toEqual(['SIGSTOP 2', 'SIGSTOP 5'])
})

test('stops a child only after its parent has stopped', () => {
  const { system, signals, states } = createSystem([
    { pid: 2, parent: 1 },
    { pid: 3, parent: 2 },
  ])
  let looks = 0
  const signal = (pid: number, name: 'SIGSTOP' | 'SIGCONT'): boolean => {
    if (pid === 3) signals.push(`shell is ${states.get(2)?.state}`)
    system.signal(pid, name)
    if (pid === 2) states.set(2, { pid: 2, parent: 1, state: 'R' })
    return true
  }
  const sleep = (): void => {
    looks += 1
    // As on a busy machine.
    if (looks === 500) states.set(2, { pid: 2, parent: 1, state: 'T' })
  }
  pauseProcesses({ ...system, signal, sleep })
  expect(signals).toEqual(['SIGSTOP 2', 'shell is T', 'SIGSTOP 3'])
})

test('waits until every thread of a process has stopped', () => {
  const { system, states } = createSystem([{ pid: 2, parent: 1 }])
  let looks = 0
  const sleep = (): void => {
    looks += 1
  }
  const threadStates = (pid: number): readonly string[] => [
    states.get(pid)?.state ?? 'X',
    looks < 4 ? 'R' : 'T',
  ]
  pauseProcesses({ ...system, sleep, threadStates })
  expect(looks).toBe(4)
})

test('an interactive shell does not notice that its job was paused', async () => {
  const run = record(createStartProcess(), ['bash', '--norc', '--noprofile', '-i'], { mode: 'pty' })
  run.process.write(new TextEncoder().encode('sleep 60 | sleep 60\r'))
  await eventually(() => run.text().includes('sleep 60\r\n'), { what: 'the job' })
  await Bun.sleep(100)
  for (let count = 0; count < 30; count += 1) {
    pauseProcesses()()
    await Bun.sleep(2)
  }
  await Bun.sleep(50)
  expect(run.text()).not.toContain('Stopped')
  await run.process.terminate()
})
