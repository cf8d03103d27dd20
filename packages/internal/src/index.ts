export * from './host-api.ts'
export * from './ids.ts'
export * from './internal-token.ts'
