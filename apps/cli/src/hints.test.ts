import { expect, test } from 'bun:test'
import { ERRORS, type ErrorCode } from '@sandwire/protocol'
import { hintFor } from './hints.ts'

const CONTEXT = { url: 'http://h', hasToken: true, comeBack: undefined }

test('hintFor has one line for every error', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) expect(hintFor(code, CONTEXT)).toMatch(/^[^\n]{5,}$/)
})

test('hintFor depends on what is known', () => {
  expect(hintFor('unauthorized', { ...CONTEXT, hasToken: false })).toContain('give a token')
  expect(hintFor('unauthorized', CONTEXT)).toContain('not accepted')
  expect(hintFor('link_lost', CONTEXT)).toContain('http://h')
  expect(hintFor('link_lost', { ...CONTEXT, comeBack: 'sbx-stdio http://h --session s' })).toBe(
    'sbx-stdio http://h --session s',
  )
})
