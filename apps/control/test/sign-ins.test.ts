import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { SignIns } from '../src/account/sign-ins.ts'
import { AccountStore } from '../src/account/store.ts'
import type { SignIn } from '../src/auth/browser-sign-in.ts'
import { sqlOf } from './support/bun-sql.ts'

function open(): SignIns {
  const sql = sqlOf(new Database(':memory:'))
  // Creates the tables.
  void new AccountStore(sql)
  return new SignIns(sql)
}

function signIn(login: string, changes: Partial<SignIn> = {}): SignIn {
  return {
    login,
    name: 'Ann',
    scopes: ['connect', 'exec'],
    issuer: 'test',
    issuerBinding: 'v',
    createdMs: 0,
    expiresMs: 100,
    ...changes,
  }
}

test('a sign-in is found by its hash until it expires', () => {
  const signIns = open()
  signIns.add(signIn('a'), 'hash-a')
  signIns.add(signIn('b', { issuer: null, expiresMs: 200 }), 'hash-b')
  expect(signIns.find('hash-a', 99)).toEqual(signIn('a'))
  expect(signIns.find('hash-a', 100)).toBeUndefined()
  expect(signIns.find('a', 0)).toBeUndefined()
  expect(signIns.find('hash-b', 100)?.issuer).toBeNull()
  expect(signIns.list(100).map(({ login }) => login)).toEqual(['b'])
})

test('a sign-in ends on request, once', () => {
  const signIns = open()
  signIns.add(signIn('a'), 'hash-a')
  expect([signIns.remove('a'), signIns.remove('a')]).toEqual([true, false])
  expect(signIns.find('hash-a', 0)).toBeUndefined()
})

test('the oldest sign-in ends when there are too many', () => {
  const signIns = open()
  const ended = Array.from({ length: 66 }, (_, at) =>
    signIns.add(signIn(`l${at}`, { createdMs: at, expiresMs: 1_000 }), `hash-${at}`),
  ).flat()
  expect(ended).toEqual(['l0', 'l1'])
  expect(signIns.list(0)).toHaveLength(64)
})

test('expired sign-ins are removed before any other', () => {
  const signIns = open()
  for (let at = 0; at < 64; at++) signIns.add(signIn(`l${at}`), `hash-${at}`)
  expect(signIns.add(signIn('new', { createdMs: 100, expiresMs: 200 }), 'hash')).toEqual([])
})

test('a state is used once and stored until it would have expired', () => {
  const signIns = open()
  expect([signIns.useState('s', 100), signIns.useState('s', 100)]).toEqual([true, false])
  signIns.removeExpired(99)
  expect(signIns.useState('s', 100)).toBe(false)
  signIns.removeExpired(100)
  expect(signIns.useState('s', 200)).toBe(true)
})
