import { describe, expect, test } from 'bun:test'
import { FileText } from '../editor/file-text.ts'
import { conflictMessage } from './conflict-message.ts'
import type { Theirs } from './open-file.ts'

function say(theirs: Theirs, { mine = 'mine\n', isDirty = true, triedToSave = false } = {}): string {
  return conflictMessage({ theirs, mine: FileText.of(mine), isDirty, triedToSave })
}

function onDisk(whole: string): Theirs {
  return { text: FileText.of(whole), etag: '1' }
}

describe('the message of a conflict', () => {
  test('says which side is which', () => {
    expect(say(onDisk('theirs\n'))).toBe(
      'The file changed on disk while you were editing it. Left: on disk. Right: your version (editable).',
    )
  })

  test('says what replaced a file that is no longer text', () => {
    expect(say({ text: undefined, etag: '1' })).toContain('is no longer text')
    expect(say('gone')).toContain('was deleted or moved while you were editing it')
    expect(say('folder')).toBe('A folder has taken the place of this file. Your changes are still here.')
    expect(say('special')).toContain('no longer a regular file')
    expect(say('folder', { isDirty: false })).toBe(
      'A folder has taken the place of this file. This is its last text.',
    )
  })

  test('says that only invisible characters differ', () => {
    const mine = 'a\nb\n'
    expect(say(onDisk('a\r\nb\r\n'), { mine })).toBe(
      'The file changed on disk while you were editing it. Only line endings differ: CRLF on disk, LF in yours.',
    )
    expect(say(onDisk('\u{feff}a\nb\n'), { mine })).toContain(
      'Only the byte order mark differs: on disk, but not in yours.',
    )
    expect(say(onDisk('a\r\nb\r\n'), { mine: `\u{feff}${mine}` })).toContain(
      'Only line endings and the byte order mark differ: CRLF on disk, LF in yours; in yours, but not on disk.',
    )
  })

  test('mentions invisible differences beside visible ones', () => {
    expect(say(onDisk('a\nb\r\n'), { mine: 'a\nc\n' })).toEndWith(
      'your version (editable). Line endings differ as well: mixed on disk, LF in yours.',
    )
    expect(say(onDisk('a'), { mine: 'a\r\nc' })).not.toContain('Line ends')
  })

  test('says that nothing was saved after an attempt to save', () => {
    expect(say(onDisk('theirs\n'), { triedToSave: true })).toStartWith(
      'Not saved: choose a version. The file',
    )
  })
})
