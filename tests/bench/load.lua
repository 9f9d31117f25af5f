-- load.lua - what wrk asks the server, and whether each answer was right
--
--	wrk -t N -c N ... -s load.lua http://HOST:PORT/mcp PLAN EXPECTED N
--
-- PLAN is a file with a request a line: session, tab, body.  Thread i of N
-- sends the lines i, i + N, ... in turn and begins again, so that with a
-- connection per thread and a line per thread each connection keeps to its
-- session and to the sandbox that its body names.  An answer is right if it is
-- 200 and holds EXPECTED.  Where that is a number, answers are not looked at one
-- by one, which costs wrk as much as they cost a quick server: they have that
-- many bytes on average, with their heads.  Prints one line at the end:
--
--	requests microseconds bad p50 p90 p99 max	(of the latency, in us)

local threads = {}

function setup(thread)
	table.insert(threads, thread)
	thread:set("number", #threads)
end

local function read_plan(path)
	local lines = {}
	for line in io.lines(path) do
		local session, body = line:match("^(%S+)\t(.*)$")
		lines[#lines + 1] = wrk.format("POST", nil, {
			["Host"] = wrk.host .. ":" .. wrk.port,
			["Content-Type"] = "application/json",
			["Accept"] = "application/json, text/event-stream",
			["MCP-Protocol-Version"] = "2025-11-25",
			["Mcp-Session-Id"] = session,
		}, body)
	end
	return lines
end

local plan, step
local at = 1

function init(args)
	plan = read_plan(args[1])
	expected = args[2]
	if tonumber(expected) then
		response = nil
	end
	step = tonumber(args[3])
	at = (number - 1) % #plan + 1
	bad = 0
end

function request()
	local text = plan[at]
	at = (at + step - 1) % #plan + 1
	return text
end

function response(status, headers, body)
	if status ~= 200 or not body:find(expected, 1, true) then
		bad = bad + 1
		if bad == 1 then
			io.stderr:write("wrong answer: ", status, " ",
			    body:sub(1, 500), "\n")
		end
	end
end

function done(summary, latency, requests)
	local errors = summary.errors
	local wrong = errors.connect + errors.read + errors.write +
	    errors.timeout + errors.status
	local least = tonumber(threads[1]:get("expected"))
	if least and summary.bytes < least * summary.requests then
		wrong = wrong + 1
	end
	for _, thread in ipairs(threads) do
		wrong = wrong + thread:get("bad")
	end
	io.write(string.format("%d %d %d %d %d %d %d\n", summary.requests,
	    summary.duration, wrong, latency:percentile(50),
	    latency:percentile(90), latency:percentile(99), latency.max))
end
