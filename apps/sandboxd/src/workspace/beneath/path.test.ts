import { describe, expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { namesOf, parsePath, splitLast } from './path.ts'
import { quotePath } from './file-error.ts'

function names(text: string): string[] {
  return parsePath(text).names.map((name) => Buffer.from(name).toString())
}

function refusalOf(text: string): string {
  try {
    parsePath(text)
    return 'none'
  } catch (error) {
    return error instanceof SandwireError && error.code === 'path_refused' ? error.message : 'another error'
  }
}

describe('parsePath', () => {
  test('drops empty names and "."', () => {
    expect(names('.')).toEqual([])
    expect(names('./a//b/./c/')).toEqual(['a', 'b', 'c'])
  })

  test('(threat T12) accepts names that only resemble ".."', () => {
    for (const name of ['..;', '....', '\\..\\', '..%2f', '%2e%2e', '…', '.. ', 'file:'])
      expect(names(`${name}/x`)).toEqual([name, 'x'])
  })

  test.each([
    ['', 'it is empty'],
    ['/etc/passwd', 'it is an absolute path'],
    ['//x', 'it is an absolute path'],
    ['../etc/passwd', 'it is outside the workspace'],
    ['a/./../../x', 'it is outside the workspace'],
    ['a/../..', 'it is outside the workspace'],
    ['a\0b', 'it contains a NUL character'],
    ['a/'.repeat(2048), 'it is longer than 4095 bytes'],
    ['ä'.repeat(2048), 'it is longer than 4095 bytes'],
    ['x'.repeat(256), 'a name is longer than 255 bytes'],
    [`a/${'ä'.repeat(128)}`, 'a name is longer than 255 bytes'],
    ['\ud800', 'it contains an invalid character'],
  ])('(threat T12) refuses %j and names the path', (text, why) => {
    expect(refusalOf(text)).toEndWith(`: ${why}`)
  })

  test('accepts the longest path and name', () => {
    expect(names('x'.repeat(255))).toHaveLength(1)
    expect(names(`${'a/'.repeat(2047)}b`)).toHaveLength(2048)
  })
})

test('splitLast returns undefined for the root and ".."', () => {
  expect(splitLast(parsePath('.'))).toBeUndefined()
  expect(splitLast(parsePath('a/..'))).toBeUndefined()
  expect(splitLast(parsePath('a/b'))?.names).toEqual(namesOf(Buffer.from('a')))
})

test('(threat T24) quotePath returns printable characters only', () => {
  expect(quotePath('a\x1b]0;x\x07\u202eb\n"\\\udcff\u2028')).toBe(
    '"a\ufffd]0;x\ufffd\ufffdb\ufffd\\"\\\\\ufffd\ufffd"',
  )
  expect(quotePath('x'.repeat(300))).toHaveLength(203)
})
