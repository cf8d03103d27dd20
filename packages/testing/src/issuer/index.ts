export {
  type IssuerOptions,
  type IssuerSettings,
  type MintOptions,
  startIssuer,
  type TestIssuer,
} from './issuer.ts'
export { PEOPLE, type Person, SANDBOX_SCOPES, type SandboxScope } from './users.ts'
