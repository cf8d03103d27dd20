import type { RunEvent } from '@sandwire/agent'
import { describe, expect, test } from 'bun:test'
import { Transcript, type TranscriptEntry, type TranscriptItem } from './transcript.ts'

function transcriptOf(...events: readonly RunEvent[]): Transcript {
  const transcript = new Transcript()
  events.forEach((event, at) => transcript.add({ seq: at + 1, event }))
  return transcript
}

function itemsOf(transcript: Transcript): readonly TranscriptItem[] {
  return transcript.state.chunks.flat()
}

const call: RunEvent = { type: 'tool_call', id: 't1', name: 'Bash', title: 'ls', input: { command: 'ls' } }
const permission: RunEvent = {
  type: 'awaiting_input',
  prompt: 'May it?',
  requestId: 'r1',
  kind: 'permission',
  deadlineMs: 5,
}

describe('transcript', () => {
  test('joins a tool call and its result', () => {
    const transcript = transcriptOf(call, { type: 'tool_result', id: 't1', isError: false, content: 'a\nb' })
    expect(itemsOf(transcript)).toEqual([
      expect.objectContaining({
        kind: 'tool',
        title: 'ls',
        result: { isError: false, content: 'a\nb', omittedChars: 0 },
      }),
    ])
  })

  test('ignores events that were seen before, as after a reconnect', () => {
    const transcript = transcriptOf(call)
    transcript.add({ seq: 1, event: call })
    expect([itemsOf(transcript).length, transcript.state.lastSeq]).toEqual([1, 1])
  })

  test('shows a message once, with its newest receipt', () => {
    const message = { type: 'status', status: 'message', id: 'm', text: 'Hi', by: 'ann' } as const
    const transcript = transcriptOf({ ...message, receipt: 'queued' }, { ...message, receipt: 'completed' })
    expect(itemsOf(transcript)).toEqual([
      { id: 'message m', kind: 'message', messageId: 'm', text: 'Hi', by: 'ann', receipt: 'completed' },
    ])
  })

  test('says to which message the files were restored, and which restore was the last', () => {
    const transcript = new Transcript()
    const events: readonly TranscriptEntry['event'][] = [
      { type: 'user_message', id: 'm', text: 'Hi', by: 'ann' },
      { type: 'files_restored', message: 'm', by: 'ben' },
      { type: 'files_restored', message: null, by: 'ann' },
    ]
    events.forEach((event, at) => transcript.add({ seq: at + 1, event }))
    expect(itemsOf(transcript).slice(1)).toMatchObject([
      { id: '2', note: { kind: 'restored', text: 'Hi', by: 'ben' } },
      { id: '3', note: { kind: 'restored', text: null, by: 'ann' } },
    ])
    expect(transcript.state.lastRestore).toBe('3')
  })

  test('has a request pending until it is answered', () => {
    const transcript = transcriptOf(permission)
    expect(transcript.state.pending.map(({ requestId }) => requestId)).toEqual(['r1'])
    transcript.add({
      seq: 2,
      event: { type: 'status', status: 'approval', requestId: 'r1', outcome: 'allow', by: 'ann' },
    })
    expect(transcript.state.pending).toEqual([])
    expect(itemsOf(transcript)).toEqual([
      expect.objectContaining({ outcome: { outcome: 'allow', by: 'ann' } }),
    ])
  })

  test('replaces partial text by the finished block', () => {
    const transcript = transcriptOf()
    for (const text of ['He', 'llo']) transcript.addPartial({ kind: 'text', messageId: 'm', text })
    expect(transcript.state.partial).toMatchObject({ text: 'Hello', isThinking: false })
    transcript.add({ seq: 1, event: { type: 'text', text: 'Hello' } })
    expect(transcript.state.partial).toBeUndefined()
    expect(itemsOf(transcript)).toEqual([{ id: '1', kind: 'text', text: 'Hello', isThinking: false }])
  })

  test('changes only the chunk of a changed item', () => {
    const transcript = transcriptOf(call)
    for (let seq = 2; seq <= 200; seq += 1) transcript.add({ seq, event: { type: 'text', text: `${seq}` } })
    const before = transcript.state.chunks
    transcript.add({
      seq: 201,
      event: { type: 'tool_result', id: 't1', isError: true, content: 'no' },
    })
    const after = transcript.state.chunks
    expect(after.map((chunk, at) => chunk === before[at])).toEqual([
      false,
      ...before.slice(1).map(() => true),
    ])
  })

  test('keeps todo list, files and state, and nothing pending at the end', () => {
    const transcript = transcriptOf(
      permission,
      { type: 'todo', items: [{ id: '1', content: 'a', status: 'pending' }] },
      { type: 'file_change', path: 'a', action: 'create' },
      { type: 'file_change', path: 'b', action: 'create' },
      { type: 'file_change', path: 'a', action: 'modify' },
      { type: 'status', status: 'state', state: 'turn' },
      { type: 'complete', exitCode: 0, signal: null },
    )
    expect(transcript.state).toMatchObject({
      files: ['b', 'a'],
      agentState: 'turn',
      isComplete: true,
      pending: [],
      todo: [{ content: 'a' }],
    })
  })

  test('joins output that follows output', () => {
    const output = (data: string): RunEvent => ({ type: 'stderr', data })
    const entries: readonly TranscriptEntry[] = [output('a'), output('b'), call, output('c')].map(
      (event, at) => ({
        seq: at + 1,
        event,
      }),
    )
    const transcript = new Transcript()
    for (const entry of entries) transcript.add(entry)
    expect(itemsOf(transcript).map((item) => (item.kind === 'note' ? item.note : item.kind))).toEqual([
      { kind: 'output', text: 'ab' },
      'tool',
      { kind: 'output', text: 'c' },
    ])
  })
})
