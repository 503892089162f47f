// An OpenID provider on another site than the console, with a page on which the
// user enters a name.
import { createHash, createPrivateKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { atEnd } from './server.mjs'

export const clientID = 'parley-console'

export async function startIssuer(t) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const codes = new Map()
  const server = createServer((request, response) => {
    const url = new URL(request.url, issuer)
    const json = (value, status = 200) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          id_token_signing_alg_values_supported: ['RS256'],
        })
      case '/keys':
        return json({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: '1', alg: 'RS256', use: 'sig' }] })
      case '/authorize': {
        const again = [...url.searchParams].map(([k, v]) => `<input type="hidden" name="${k}" value="${v}">`).join('')
        return response
          .writeHead(200, { 'Content-Type': 'text/html' })
          .end(
            '<!doctype html><title>Who are you?</title><link rel="icon" href="data:,">' +
              `<form action="/continue">${again}` +
              '<button name="user" value="ann">Continue as ann</button>' +
              '<button name="user" value="eve">Continue as eve</button></form>',
          )
      }
      case '/continue': {
        const code = randomUUID()
        codes.set(code, url.searchParams)
        const back = new URL(url.searchParams.get('redirect_uri'))
        back.searchParams.set('code', code)
        back.searchParams.set('state', url.searchParams.get('state'))
        return response.writeHead(303, { Location: back.href }).end()
      }
      case '/token': {
        let body = ''
        request.on('data', (chunk) => (body += chunk))
        return request.on('end', () => {
          const asked = new URLSearchParams(body)
          const found = codes.get(asked.get('code'))
          codes.delete(asked.get('code'))
          const challenge = createHash('sha256')
            .update(asked.get('code_verifier') ?? '')
            .digest('base64url')
          if (found?.get('code_challenge') !== challenge) return json({ error: 'invalid_grant' }, 400)
          const now = Math.floor(Date.now() / 1000)
          const user = found.get('user')
          const claims = {
            iss: issuer,
            aud: clientID,
            sub: user,
            nonce: found.get('nonce'),
            iat: now,
            exp: now + 300,
            groups: user === 'ann' ? ['staff'] : [],
          }
          return json({ access_token: 'x', token_type: 'Bearer', id_token: jws(privateKey, claims) })
        })
      }
    }
    return json({ error: 'not found' }, 404)
  })
  await new Promise((resolve) => server.listen(0, 'localhost', resolve))
  atEnd(t, () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const issuer = `http://localhost:${server.address().port}`
  return issuer
}

function jws(key, claims) {
  const text = [{ alg: 'RS256', kid: '1', typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign(
    'RSA-SHA256',
    Buffer.from(text),
    createPrivateKey(key.export({ type: 'pkcs8', format: 'pem' })),
  )
  return `${text}.${signature.toString('base64url')}`
}
