export * from './base64url.ts'
