import { expect, test } from 'bun:test'
import {
  namesFolder,
  isContentsPath,
  baseName,
  parentOf,
  parseLocation,
  parseTarget,
  within,
} from './location.ts'

test.each([
  ['box:a/b', { kind: 'sandbox', sandbox: 'box', path: 'a/b' }],
  ['box:', { kind: 'sandbox', sandbox: 'box', path: '.' }],
  ['box:.', { kind: 'sandbox', sandbox: 'box', path: '.' }],
  ['box:./a//b/', { kind: 'sandbox', sandbox: 'box', path: 'a/b/' }],
  ['box:a/.', { kind: 'sandbox', sandbox: 'box', path: 'a/.' }],
  ['box:a:b', { kind: 'sandbox', sandbox: 'box', path: 'a:b' }],
  ['box:/workspace/a/b', { kind: 'sandbox', sandbox: 'box', path: 'a/b' }],
  ['box:/workspace/a/', { kind: 'sandbox', sandbox: 'box', path: 'a/' }],
  ['box:/workspace', { kind: 'sandbox', sandbox: 'box', path: '.' }],
  ['box:/workspace/', { kind: 'sandbox', sandbox: 'box', path: '.' }],
  ['-', { kind: 'stream' }],
  ['a/b', { kind: 'local', path: 'a/b' }],
  ['./box:a', { kind: 'local', path: './box:a' }],
  ['Box:a', { kind: 'local', path: 'Box:a' }],
  [':a', { kind: 'local', path: ':a' }],
] as const)('parses %s', (argument, location) => {
  expect(parseLocation(argument)).toEqual(location)
})

test('refuses an empty path, and an absolute path in a sandbox', () => {
  for (const word of ['', 'box:/etc', 'box://', 'box:/workspaces/a', 'box:/workspace2', 'box://workspace/a'])
    expect(() => parseLocation(word)).toThrow()
})

test('recognizes all names of stdout as a target', () => {
  for (const word of ['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])
    expect(parseTarget(word)).toEqual({ kind: 'stream' })
  expect(parseTarget('/dev/null')).toEqual({ kind: 'local', path: '/dev/null' })
  expect(parseLocation('/dev/stdout')).toEqual({ kind: 'local', path: '/dev/stdout' })
})

test('baseName is the last part of a path', () => {
  expect(['a/b', 'a/b/', 'b'].map(baseName)).toEqual(['b', 'b', 'b'])
  expect(['.', 'a/.', '..', 'a/../', '/'].map(baseName)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect(['a/', 'a/.', '.', '..', '/'].map(namesFolder)).toEqual([true, true, true, true, true])
  expect(['a', 'a.', 'a..', '..a', 'a/b'].map(namesFolder)).toEqual([false, false, false, false, false])
  expect(['a/', '..a', 'a/b.'].map(isContentsPath)).toEqual([false, false, false])
})

test('joins and splits sandbox paths', () => {
  expect([parentOf('a'), parentOf('a/b/'), parentOf('a/b/c')]).toEqual(['.', 'a', 'a/b'])
  expect([within('.', 'x'), within('a/', 'x'), within('a/.', 'x')]).toEqual(['x', 'a/x', 'a/x'])
})
