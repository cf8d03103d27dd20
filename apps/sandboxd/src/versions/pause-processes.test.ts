import { expect, test } from 'bun:test'
import { pauseProcesses, type ProcessSystem } from './pause-processes.ts'

/** Processes below process 1; signals are recorded and change their state. */
function createSystem(processes: readonly { pid: number; parent: number; state?: string }[]) {
  const states = new Map(processes.map(({ pid, parent, state = 'S' }) => [pid, { pid, parent, state }]))
  const signals: string[] = []
  const system: ProcessSystem = {
    ownPid: 1,
    list: () => [...states.values()].map((each) => ({ ...each })),
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
