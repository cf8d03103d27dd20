import { expect, test } from 'bun:test'
import { hexOf } from './hex.ts'

test('bytes are listed as numbers and letters', () => {
  const bytes = new TextEncoder().encode('\u007fELF\u0000 twenty bytes long')
  expect(hexOf(bytes)).toBe(
    [
      '00000000  7f 45 4c 46 00 20 74 77  65 6e 74 79 20 62 79 74  .ELF. twenty byt',
      '00000010  65 73 20 6c 6f 6e 67                              es long',
    ].join('\n'),
  )
  expect(hexOf(new Uint8Array())).toBe('')
})
