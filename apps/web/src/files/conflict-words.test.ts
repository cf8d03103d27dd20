import { describe, expect, test } from 'bun:test'
import { FileText } from '../editor/file-text.ts'
import { conflictWords } from './conflict-words.ts'
import type { Theirs } from './file-state.ts'

function say(theirs: Theirs, { mine = 'mine\n', isDirty = true, isAsked = false } = {}): string {
  return conflictWords({ theirs, mine: FileText.of(mine), isDirty, isAsked })
}

function onDisk(whole: string): Theirs {
  return { text: FileText.of(whole), etag: '1' }
}

describe('the words about a conflict', () => {
  test('say where which text is', () => {
    expect(say(onDisk('theirs\n'))).toBe(
      'The file changed while you changed it too. Left: on disk. Right: yours, which you can still edit.',
    )
  })

  test('say what is there when it is no text', () => {
    expect(say({ text: undefined, etag: '1' })).toContain('is no longer text')
    expect(say('gone')).toContain('was removed or moved while you changed it')
    expect(say('folder')).toBe('There is a folder in the place of this file now. Nothing of yours is lost.')
    expect(say('special')).toContain('no longer a file')
    expect(say('folder', { isDirty: false })).toBe(
      'There is a folder in the place of this file now. This is the text it had.',
    )
  })

  test('say that only what cannot be seen differs', () => {
    const mine = 'a\nb\n'
    expect(say(onDisk('a\r\nb\r\n'), { mine })).toBe(
      'The file changed while you changed it too. Only line ends differ: CRLF on disk, LF in yours.',
    )
    expect(say(onDisk('\u{feff}a\nb\n'), { mine })).toContain(
      'Only the byte order mark differs: it is on disk, and not in yours.',
    )
    expect(say(onDisk('a\r\nb\r\n'), { mine: `\u{feff}${mine}` })).toContain(
      'Only line ends and the byte order mark differ: CRLF on disk, LF in yours; it is not on disk, but in yours.',
    )
  })

  test('say what cannot be seen besides what can', () => {
    expect(say(onDisk('a\nb\r\n'), { mine: 'a\nc\n' })).toEndWith(
      'which you can still edit. Line ends differ as well: mixed on disk, LF in yours.',
    )
    expect(say(onDisk('a'), { mine: 'a\r\nc' })).not.toContain('Line ends')
  })

  test('say that nothing was saved to who tried', () => {
    expect(say(onDisk('theirs\n'), { isAsked: true })).toStartWith('Not saved: choose what to keep. The file')
  })
})
