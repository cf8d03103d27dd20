import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProcessSpec } from './process.ts'
import { resolveCommand } from './resolve-command.ts'

let root = ''

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'resolve-command-'))
  mkdirSync(join(root, 'bin'))
  mkdirSync(join(root, 'bin', 'folder'))
  const write = (name: string, text: string, mode: number) => {
    writeFileSync(join(root, 'bin', name), text)
    chmodSync(join(root, 'bin', name), mode)
  }
  write('good', '#!/bin/sh\n', 0o755)
  write('plain', 'text', 0o644)
  write('orphan', '#!/no/such/interpreter -x\n', 0o755)
  write('foreign', '#!/bin/sh\r\necho\r\n', 0o755)
})

afterAll(() => rmSync(root, { recursive: true }))

const resolve = (name: string, changes: Partial<ProcessSpec> = {}) =>
  resolveCommand({
    argv: [name],
    cwd: root,
    env: { PATH: `/no/such:${join(root, 'bin')}` },
    mode: 'pipe',
    cols: 80,
    rows: 24,
    ...changes,
  })

test('a command is found on the PATH of its own environment', () => {
  expect(resolve('good')).toEqual({ file: join(root, 'bin', 'good') })
  expect(resolve('sh')).toEqual({ failure: 'not_found', message: 'Cannot start "sh": not found in PATH' })
  expect(resolve('sh', { env: {} })).toHaveProperty('file')
})

test('a command with a slash is found from the working directory', () => {
  expect(resolve('bin/good')).toEqual({ file: join(root, 'bin', 'good') })
  expect(resolve('./good')).toEqual({ failure: 'not_found', message: 'Cannot start "./good": no such file' })
  expect(resolve('bin/good/below')).toHaveProperty('failure', 'not_found')
})

test('a command that is not executable differs from one that does not exist', () => {
  const file = join(root, 'bin', 'plain')
  expect(resolve('plain')).toEqual({
    failure: 'not_executable',
    message: `Cannot start "plain": "${file}" is not executable`,
  })
  const folder = join(root, 'bin', 'folder')
  expect(resolve('folder')).toEqual({
    failure: 'not_executable',
    message: `Cannot start "folder": "${folder}" is a folder`,
  })
})

test('a script with CRLF line ends has a missing interpreter', () => {
  expect(resolve('foreign')).toEqual({
    failure: 'not_executable',
    message: String.raw`Cannot start "foreign": its interpreter "/bin/sh\r" cannot be executed`,
  })
})

test('a script whose interpreter is missing is not executable', () => {
  expect(resolve('orphan')).toEqual({
    failure: 'not_executable',
    message: 'Cannot start "orphan": its interpreter "/no/such/interpreter" cannot be executed',
  })
})

test('a name that no file can have is not found', () => {
  expect(resolve('a\0b')).toHaveProperty('failure', 'not_found')
  expect(resolve('')).toHaveProperty('failure', 'not_found')
})

test('a working directory that is a file cannot be used', () => {
  const cwd = join(root, 'bin', 'plain')
  expect(resolve('good', { cwd })).toHaveProperty('failure', 'spawn_failed')
})
