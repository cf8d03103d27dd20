import { expect, test } from 'bun:test'
import { typeInto } from '../src/run/typed-input.ts'

test('typed characters are echoed, and lines are sent at Enter', () => {
  expect(typeInto('', 'hi\rmore')).toEqual({
    echo: 'hi\r\nmore',
    lines: ['hi'],
    rest: 'more',
    isInterrupt: false,
  })
  expect(typeInto('more', '\r').lines).toEqual(['more'])
  expect(typeInto('', '  \r').lines).toEqual([])
})

test('backspace, Ctrl-U and Ctrl-C edit the line', () => {
  expect(typeInto('ab', '\u007fc')).toMatchObject({ echo: '\b \bc', rest: 'ac' })
  expect(typeInto('', '\u007f')).toMatchObject({ echo: '', rest: '' })
  expect(typeInto('ab', '\u0015')).toMatchObject({ echo: '\b \b\b \b', rest: '' })
  expect(typeInto('ab', '\u0003')).toMatchObject({ rest: '', lines: [], isInterrupt: true })
  expect(typeInto('', '\u001b[A')).toMatchObject({ rest: '[A' })
})
