import { expect, test } from 'bun:test'
import { describeInput } from './tool-input.ts'

test('shows what is invisible in the input of a tool, since the user may have to allow it (threat T24)', () => {
  expect(describeInput('Bash', { command: 'ls \u202e#\u200b\n\techo' })).toEqual({
    kind: 'text',
    text: 'ls <U+202E>#<U+200B>\n\techo',
  })
  expect(describeInput('Write', { file_path: 'a\u202eb', content: 'x\u2066y\n' })).toEqual({
    kind: 'edits',
    path: 'a<U+202E>b',
    edits: [{ before: '', after: 'x<U+2066>y\n' }],
  })
  expect(describeInput('Other', { a: '\u2800' })).toMatchObject({ text: expect.stringContaining('<U+2800>') })
})
