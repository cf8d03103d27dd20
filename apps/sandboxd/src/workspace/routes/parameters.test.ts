import { expect, test } from 'bun:test'
import { Query } from './parameters.ts'

const query = (search: string): Query => new Query(new URL(`http://localhost/x${search}`))

test('keeps the bytes of a path, and reads + as a space', () => {
  expect(query('?path=a%FFb%2Bc+d').text('path')).toBe('a\udcffb+c d')
  expect(query('?%70ath=x').text('path')).toBe('x')
})

test('reports missing, repeated, malformed and out-of-range parameters', () => {
  expect(() => query('').text('path')).toThrow('Cannot use parameter "path": missing')
  expect(() => query('?path=a&path=b').text('path')).toThrow('given twice')
  expect(() => query('?path=%2').text('path')).toThrow('not percent-encoded')
  expect(() => query('?recursive=yes').flag('recursive')).toThrow('expected 0 or 1')
  for (const value of ['-1', '11', '1e1', '08', '', '%EF%BC%91'])
    expect(() => query(`?limit=${value}`).integer('limit', { min: 0, max: 10 })).toThrow('from 0 to 10')
})

test('accepts repeatable parameters and fallbacks', () => {
  expect(query('?glob=a&glob=%2A.ts').all('glob')).toEqual(['a', '*.ts'])
  expect(query('').text('path', '.')).toBe('.')
  expect(query('').choice('case', ['smart', 'sensitive'], 'smart')).toBe('smart')
  expect(query('?limit=7').integer('limit', { min: 0, max: 10 })).toBe(7)
})
