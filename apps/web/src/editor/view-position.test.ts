import { EditorState } from '@codemirror/state'
import { expect, test } from 'bun:test'
import { anchorField, setAnchor } from './view-position.ts'

const LINES = Array.from({ length: 20 }, (_, at) => `line ${at + 1}`)

function start(): EditorState {
  return EditorState.create({ doc: LINES.join('\n'), extensions: [anchorField] })
}

test('maps the anchor through edits', () => {
  let state = start()
  const { to } = state.doc.line(10)
  const held = { position: to, topPx: 100 }
  state = state.update({ effects: setAnchor.of(held) }).state
  expect(state.field(anchorField)).toEqual(held)
  const lineHeld = (): number => state.doc.lineAt(state.field(anchorField)?.position ?? 0).number
  // The typed text is undone.
  state = state.update({ changes: { from: to - 4, to } }).state
  expect(lineHeld()).toBe(10)
  // Lines are inserted above it.
  state = state.update({ changes: { from: 0, insert: 'first\nsecond\n' } }).state
  expect([lineHeld(), state.field(anchorField)?.topPx]).toEqual([12, 100])
})

test('sets an anchor in the current text', () => {
  let state = start()
  const changes = { from: 0, to: state.doc.line(2).from }
  state = state.update({ changes, effects: setAnchor.of({ position: 0, topPx: 5 }) }).state
  expect(state.field(anchorField)).toEqual({ position: 0, topPx: 5 })
})
