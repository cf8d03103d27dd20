import { expect, test } from 'bun:test'
import { CODE_LIFE_MS, SignInCodes } from './sign-in-codes.ts'

function open(): { codes: SignInCodes; pass: (ms: number) => void } {
  let nowMs = 0
  return {
    codes: new SignInCodes(() => nowMs),
    pass: (ms) => {
      nowMs += ms
    },
  }
}

test('a code works once', () => {
  const { codes } = open()
  const code = codes.mint()
  expect([codes.redeem(code), codes.redeem(code)]).toEqual([true, false])
})

test('a code works until it expires', () => {
  const { codes, pass } = open()
  const [early, late] = [codes.mint(), codes.mint()]
  pass(CODE_LIFE_MS - 1)
  expect(codes.redeem(early)).toBe(true)
  pass(1)
  expect(codes.redeem(late)).toBe(false)
})

test('codes are long, differ, and others do not work', () => {
  const { codes } = open()
  const minted = Array.from({ length: 10 }, () => codes.mint())
  expect(new Set(minted).size).toBe(10)
  for (const code of minted) expect(code).toMatch(/^[A-Za-z0-9_-]{32}$/)
  for (const wrong of ['', 'x', minted[0]?.slice(1) ?? '', '__proto__'])
    expect(codes.redeem(wrong)).toBe(false)
})

test('limits unused links; the newest work', () => {
  const { codes } = open()
  const minted = Array.from({ length: 1000 }, () => codes.mint())
  expect(minted.filter((code) => codes.redeem(code))).toEqual(minted.slice(-16))
})
