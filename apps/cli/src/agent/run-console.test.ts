import { expect, test } from 'bun:test'
import type { RunEvent } from '@sandwire/agent'
import { RunConsole } from './run-console.ts'

const entry = (event: RunEvent) => ({ seq: 1, atMs: 0, event })
const ASK: RunEvent = {
  type: 'awaiting_input',
  prompt: 'Run rm?',
  requestId: 'r1',
  kind: 'permission',
  deadlineMs: 1,
  tool: { name: 'Bash', title: 'rm', input: { command: 'rm x' } },
}

test('a typed line is a message, and while a request is pending its answer', () => {
  const run = new RunConsole()
  expect(run.keys('use tabs\r', 0)).toContainEqual({ type: 'message', text: 'use tabs' })
  expect(JSON.stringify(run.event(entry(ASK)))).toContain('Run rm?')
  expect(run.statusLine(80)).toContain('1 waiting for you')
  expect(run.keys('y\r', 0)).toContainEqual({
    type: 'approve',
    requestId: 'r1',
    answer: { decision: 'allow' },
  })
  expect(run.keys('y\r', 0)).toContainEqual({ type: 'message', text: 'y' })
})

test('any other line denies a request and tells the agent why', () => {
  for (const [line, answer] of [
    ['n', { decision: 'deny' }],
    ['a', { decision: 'allow', acceptsEdits: true }],
    ['use git rm', { decision: 'deny', message: 'use git rm' }],
  ] as const) {
    const run = new RunConsole()
    run.event(entry(ASK))
    expect(run.keys(`${line}\r`, 0)).toContainEqual({ type: 'approve', requestId: 'r1', answer })
  }
})

test('a question is answered by number or in own words', () => {
  const question = {
    question: 'Which?',
    header: 'h',
    allowsMany: false,
    options: [{ label: 'One', description: '' }],
  }
  for (const [line, chosen] of [
    ['1', 'One'],
    ['neither', 'neither'],
  ] as const) {
    const run = new RunConsole()
    run.event(entry({ ...ASK, kind: 'question', questions: [question] }))
    expect(run.keys(`${line}\r`, 0)).toContainEqual({
      type: 'approve',
      requestId: 'r1',
      answer: { decision: 'allow', answers: { 'Which?': chosen } },
    })
  }
})

test('several questions are asked one after the other, and answered together', () => {
  const options = ['One', 'Two'].map((label) => ({ label, description: '' }))
  const questions = [
    { question: 'Which?', header: 'h', allowsMany: false, options },
    { question: 'What else?', header: 'h', allowsMany: true, options },
  ]
  const run = new RunConsole()
  const shown = JSON.stringify(run.event(entry({ ...ASK, kind: 'question', questions })))
  expect([shown.includes('Which?'), shown.includes('What else?')]).toEqual([true, false])
  expect(JSON.stringify(run.keys('2\r', 0))).toContain('What else?')
  expect(run.keys('1, 2\r', 0)).toContainEqual({
    type: 'approve',
    requestId: 'r1',
    answer: { decision: 'allow', answers: { 'Which?': 'Two', 'What else?': 'One, Two' } },
  })
  expect(run.keys('more\r', 0)).toContainEqual({ type: 'message', text: 'more' })
})

test('a request that another user answered is no longer pending', () => {
  const run = new RunConsole()
  run.event(entry(ASK))
  run.event(entry({ type: 'status', status: 'approval', requestId: 'r1', outcome: 'deny', by: 'bob' }))
  expect(run.keys('y\r', 0)).toContainEqual({ type: 'message', text: 'y' })
})

test('a run that waits for a message waits no longer once a turn begins', () => {
  const run = new RunConsole()
  const waits = (requestId: string) =>
    run.event(
      entry({ type: 'awaiting_input', prompt: 'Next?', requestId, kind: 'message', deadlineMs: null }),
    )
  waits('m1')
  run.event(entry({ type: 'status', status: 'state', state: 'turn' }))
  expect(run.statusLine(80)).not.toContain('waiting for you')
  waits('m2')
  expect(run.statusLine(80)).toContain('1 waiting for you')
})

test('Ctrl-C interrupts, twice aborts, and Ctrl+] leaves', () => {
  const run = new RunConsole()
  expect(run.keys('\u0003', 1_000)).toEqual([{ type: 'interrupt' }])
  expect(run.keys('\u0003', 2_000)).toEqual([{ type: 'abort' }])
  expect(run.keys('\u0003', 60_000)).toEqual([{ type: 'interrupt' }])
  expect(run.keys('\u001d', 0)).toEqual([{ type: 'detach' }])
})

test('text of the model and of tools cannot control the terminal', () => {
  const run = new RunConsole()
  const shown = JSON.stringify([
    ...run.event(entry({ type: 'stdout', data: '\u001b[2Jhi\u009b0m' })),
    ...run.event(entry({ ...ASK, prompt: '\u001b]0;x\u0007' })),
  ])
  expect(shown).not.toMatch(/\\u001b|\\u009b|\\u0007/)
  expect(shown).toContain('hi')
})

test('the status line shows state, spend, calls and todo, and what is being typed', () => {
  const run = new RunConsole()
  run.event(entry({ type: 'tool_call', id: '1', name: 'Bash', title: 'ls', input: {} }))
  run.event(
    entry({ type: 'todo', items: [{ id: '1', content: 'a', status: 'completed' }], active: 'Testing' }),
  )
  run.setCost(0.126)
  run.setState('running')
  expect(run.statusLine(80)).toBe('[running | $0.13 | 1 tool calls | todo 1/1 Testing]')
  run.keys('abc', 0)
  expect(run.statusLine(80)).toBe('> abc')
  expect(run.statusLine(4).length).toBe(3)
})
