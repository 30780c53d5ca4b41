# Asks a node with redis-rb as an application would. Prints `check<TAB>ok`, or what was seen instead.
require 'redis'

PORT = ARGV[0].to_i
PREFIX = ARGV[1]
CLIENT = Redis.new(host: '127.0.0.1', port: PORT)
BYTES = (0..255).to_a.pack('C*')

CHECKS = {
  'handshake' => -> { [CLIENT.ping, 'PONG'] },
  'echo' => -> { [CLIENT.echo(BYTES).b, BYTES] },
  'grants' => -> { [Array.new(4) { CLIENT.call('ALLOW', "#{PREFIX}a")[0] }, [1, 1, 1, 0]] },
  'repeats' => -> { [Array.new(2) { CLIENT.call('ALLOW', "#{PREFIX}r", 'ID', 'one')[2] }, [2, 2]] },
  'pipeline' => lambda {
    answers = CLIENT.multi { |all| 100.times { |i| all.call('ALLOW', "#{PREFIX}p#{i}") } }
    [answers.map(&:first), [1] * 100]
  },
  'throttle' => -> { [CLIENT.call('CL.THROTTLE', "#{PREFIX}t", 2, 3, 60), [0, 3, 2, -1, 20]] },
  'error' => lambda {
    begin
      [CLIENT.call('FLUSHALL'), 'an error']
    rescue Redis::CommandError
      [CLIENT.ping, 'PONG']
    end
  },
  'cluster' => lambda {
    members = Redis.new(cluster: ["redis://127.0.0.1:#{PORT}"])
    [Array.new(50) { |i| members.call('ALLOW', "#{PREFIX}c#{i}")[0] }, [1] * 50]
  }
}.freeze

CHECKS.each do |name, check|
  found, wanted = check.call
  puts "#{name}\t#{found == wanted ? 'ok' : "#{found.inspect} instead of #{wanted.inspect}"}"
rescue StandardError => e
  puts "#{name}\t#{e.class}: #{e.message.tr("\n", ' ')}"
end
