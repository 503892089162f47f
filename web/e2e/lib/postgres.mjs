// A PostgreSQL server of the test's own, which can be reached only through a socket in its folder.
import { execFileSync, spawn } from 'node:child_process'
import { accessSync, chownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, temporary, until } from './server.mjs'

// programs returns the folder with initdb and postgres, of the newest version, if there is one.
function programs() {
  const debian = '/usr/lib/postgresql'
  let versions = []
  try {
    versions = readdirSync(debian).sort((a, b) => Number(b) - Number(a))
  } catch {
    // it is not Debian
  }
  const places = [...versions.map((version) => join(debian, version, 'bin')), ...(process.env.PATH ?? '').split(':')]
  return places.find((place) => {
    try {
      for (const name of ['initdb', 'postgres']) accessSync(join(place, name))
      return true
    } catch {
      return false
    }
  })
}

// startPostgres returns the URL of a new, empty database; undefined: PostgreSQL is not installed. PostgreSQL refuses to
// run as root, so root runs it as the user postgres.
export async function startPostgres(t) {
  const bin = programs()
  if (bin === undefined) return undefined
  const folder = temporary(t, 'postgres')
  const as = {}
  if (process.getuid() === 0) {
    as.uid = Number(execFileSync('id', ['-u', 'postgres']))
    as.gid = Number(execFileSync('id', ['-g', 'postgres']))
    chownSync(folder, as.uid, as.gid)
  }
  const data = join(folder, 'data')
  const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  execFileSync(join(bin, 'initdb'), ['-D', data, ...options], { ...as, cwd: folder, stdio: 'pipe' })
  const args = ['-D', data, '-k', folder, '-c', 'listen_addresses=', '-c', 'fsync=off']
  const server = spawn(join(bin, 'postgres'), args, { ...as, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  server.stderr.on('data', (chunk) => (log += chunk))
  const exited = new Promise((resolve) => server.once('exit', resolve))
  atEnd(t, () => {
    server.kill('SIGQUIT')
    return exited
  })
  await until('PostgreSQL accepts connections', () => {
    if (server.exitCode !== null) throw new Error(log)
    return log.includes('ready to accept connections')
  })
  return `postgres://postgres@/postgres?host=${folder}`
}
