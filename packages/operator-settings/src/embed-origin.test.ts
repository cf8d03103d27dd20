import { describe, expect, test } from 'bun:test'
import { findEmbedOriginProblem } from './embed-origin.ts'

describe('findEmbedOriginProblem', () => {
  test.each([
    'https://app.example',
    'https://app.example:8443',
    'http://localhost:5199',
    'http://127.0.0.1',
    'http://[::1]:3000',
    'https://xn--bcher-kva.example',
  ])('takes %s', (text) => {
    expect(findEmbedOriginProblem(text)).toBeUndefined()
  })

  test.each([
    ['null', 'expected an origin'],
    ['', 'expected an origin'],
    ['app.example', 'expected an origin'],
    ['file:///', 'expected an origin'],
    ['data:text/html,x', 'expected an origin'],
    ['*', 'without wildcards'],
    ['https://*.example', 'without wildcards'],
    ['https://app.example/', 'alone, as browsers send them: https://app.example'],
    ['https://app.example/page', 'alone'],
    ['https://app.example?x', 'alone'],
    ['https://user@app.example', 'alone'],
    ['https://app.example:443', 'alone'],
    ['https://App.example', 'alone'],
    ['HTTPS://app.example', 'alone'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    ['https://app.example.', 'without a dot at its end'],
    ['http://app.example', 'expected https'],
    ['http://localhost.example', 'expected https'],
    ['http://127.0.0.1.example', 'expected https'],
    ['ws://localhost', 'expected https'],
  ])('(threat T1) refuses %j', (text, why) => {
    expect(findEmbedOriginProblem(text)).toContain(why)
  })
})
