import { describe, expect, test } from 'bun:test'
import { nameServer } from './server-names.ts'

const place = { port: 8787, pageName: 'sandwire-0123456789abcdef0123' }
const PAGE = 'sandwire-0123456789abcdef0123.localhost:8787'

describe('nameServer', () => {
  test('on one machine, its user signs in under a name that only they know', () => {
    const names = nameServer({ mode: 'local' }, place)
    expect(names.url).toBe('http://localhost:8787')
    expect(names.pageUrl).toBe(`http://${PAGE}`)
    expect(names.hosts).toEqual(['localhost:8787', '127.0.0.1:8787', '[::1]:8787', PAGE])
    expect(names.origins[0]).toBe('http://localhost:8787')
    expect(names.origins).toContain(`http://${PAGE}`)
  })

  test('a name that the operator gives is the only one', () => {
    const names = nameServer({ mode: 'local', publicOrigin: 'http://localhost:8787' }, place)
    expect(names.pageUrl).toBe('http://localhost:8787')
    expect(names.hosts).not.toContain(PAGE)
  })

  test('where others come in there is no such name', () => {
    const names = nameServer({ mode: 'open', publicOrigin: 'https://sandwire.example' }, place)
    expect(names.pageUrl).toBe('https://sandwire.example')
    expect(names.origins).toEqual(['https://sandwire.example'])
    expect(names.hosts).not.toContain(PAGE)
  })
})
