"""Words that mean the same in the trade of tools, in English and Chinese: a query finds a tool that says it otherwise.

General vocabulary, one sense a line; a word may stand in several. Names of products and services stay out, but for what
has become a word of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

_SENSES = """
create add new make insert write 创建 新建 添加 新增 增加 建立
build generate create 生成 制作
delete remove erase discard 删除 移除 删掉 去掉
clear empty purge 清空 清除
update change edit modify patch write 修改 更新 更改 编辑 改
get read fetch retrieve show view describe what 获取 读取 查看 查询 得到
list show browse which what who 列表 列出 有哪些 哪些 查询
search find lookup query 搜索 查找 查询 搜 找 检索
send deliver post 发送 发 寄 下发
publish post release 发布 发表
email mail gmail inbox mailbox 邮件 邮箱 电子邮件
message msg text 消息 信息
sms 短信
file 文件
document doc file 文档
folder directory 文件夹 目录
spreadsheet sheet excel workbook 电子表格 表格
table 表格 表
presentation slide deck powerpoint 演示文稿 幻灯片
calendar schedule agenda 日历 日程
event appointment meeting 事件 活动 会议 日程
meeting conference call meet 会议 通话
task todo 任务 待办
note memo 笔记 便签 备忘
contact people person 联系人 通讯录
user account person people 用户 账号 账户
member participant attendee 成员 参与者 参会者
group team 群组 组 团队 分组
channel conversation 频道
chat conversation talk 聊天 会话 对话
room 房间
image picture photo 图片 图像 照片
video movie clip 视频
audio sound recording 音频 录音
voice speech audio 语音 声音
speech voice synthesize speak tts 语音 合成
caption subtitle 字幕
playlist 播放列表
site website webpage 网站 站点
page 网页 页面 页
url link address 链接 网址
price cost fee inquire 价格 费用 多少钱 价钱
bill invoice 账单
invoice receipt 发票
pay payment 支付 付款
buy purchase order 购买 买 订购
refund return 退款 退还
renew renewal extend 续费 续期
balance 余额
server instance machine host 服务器 实例 主机 机器
restart reboot 重启 重新启动
start begin launch boot 启动 开始 开机 开启
stop end finish halt 停止 结束 关机 关闭
terminate destroy 销毁 终止
run execute invoke call 运行 执行 调用
cancel abort revoke 取消 撤销
copy duplicate clone 复制 拷贝 克隆
move transfer relocate 移动 转移
rename 重命名 改名
share 共享 分享
permission access acl role privilege 权限 访问
download export 下载
export convert 导出 转换
upload import insert 上传 导入
translate translation 翻译
language 语言
detect recognize identify recognition ocr 识别 检测
reply answer respond response 回复 回答 答复
comment remark 评论 留言
like rate rating 点赞 评分
reaction emoji react 表情 回应
trash bin recycle 回收站
restore recover undelete untrash 恢复 还原
archive 归档 存档
invite invitation 邀请
join 加入
leave exit 退出 离开
kick remove 踢出 移出
subscribe subscription follow 订阅 关注
notification alert notify 通知 提醒 告警
reminder remind 提醒
homework assignment coursework 作业
course class lesson classroom 课程 班级 课
student pupil 学生
teacher instructor 老师 教师
grade score mark 成绩 评分 分数
form survey questionnaire 表单 问卷
blog 博客
post article 文章 帖子
book volume 书 图书
place location venue 地点 位置 地方
nearby near around 附近
restaurant 餐馆 餐厅
weather forecast 天气
password passphrase 密码
secret credential key 密钥 机密
key keypair 密钥 密钥对
domain 域名
dns resolution resolve 解析
record 记录
certificate cert ssl tls 证书
backup snapshot 备份 快照
bucket 存储桶
storage 存储
disk 硬盘 磁盘 云盘
drive disk 云盘 网盘 云端硬盘
database db 数据库
log history 日志 历史
version revision 版本
report statistics analytics metric 报告 统计 报表
usage consumption 用量 使用量
quota limit 配额 限额
status state progress 状态 进度
order deal 订单
customer client 客户
phone telephone mobile 电话 手机
register enroll signup 注册 登记
login signin 登录
logout signout 登出
enable activate 启用 开启 激活
disable deactivate suspend pause 禁用 停用 暂停
block ban blacklist blocklist 黑名单 封禁 拉黑
mute snooze silence 静音 免打扰
approve accept allow 批准 同意 通过 接受
reject decline deny refuse 拒绝
complete finish done 完成
verify validate check 验证 校验 核验
check inspect test examine 检查 测试
compare match 比较 对比 比对
count number amount 数量 多少
free available availability busy 空闲 有空
recurring recurrence repeat instance 重复
reschedule move update 改期
label tag 标签
category type 类别 分类
filter rule 过滤 规则 筛选
template 模板
draft 草稿
attachment attach 附件
recipient receiver 收件人
signature sign 签名
row append line 行
append add 追加
column field 列 字段
cell range 单元格 范围
value content 值 内容
settings preference configuration option 设置 配置
profile 资料 个人资料
avatar photo 头像
device 设备
employee staff user 员工
administrator admin 管理员 管理
organization company enterprise 企业 公司 组织
license 执照 许可证
card 卡
live broadcast stream 直播
transcript transcription transcribe 转写 文字记录
record recording 录制
text word 文字 文本
formula 公式
handwriting handwritten 手写
traffic bandwidth 流量 带宽
port 端口
firewall 防火墙
security 安全
network 网络
container docker 容器
mirror image 镜像
model 模型
key keyword word 关键词 热词
budget 预算
coupon voucher 代金券 优惠券
bind associate attach 绑定 关联
unbind disassociate detach 解绑 解除
reset 重置 重设 重装
zone region area 可用区 地域 区域
time date 时间 日期
url web internet 网络 网页
suspicious threat malware phishing unsafe 威胁 恶意
autocomplete suggest suggestion predict 补全 建议
fast speed performance 速度 性能
visitor traffic 访客 访问量
pending wait waiting 待处理 等待
hand submit turn 提交
"""


@cache
def same_sense() -> Mapping[str, tuple[str, ...]]:
    """The other words of each word's senses, in the order of the table."""
    found: dict[str, dict[str, None]] = {}
    for line in _SENSES.strip().splitlines():
        words = line.split()
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}


_STOP = """
a an the of to in on at for and or but is are was were be been this that these those my your our his her its their
me i you we they he she it him us them with by from as into onto about please can could would will shall should do
does did how whom when where why there here some any if so not no than then too very also just only
have has had let want need s t ve re ll d
"""
STOP_WORDS = frozenset(_STOP.split())
"""Words that say nothing of what a tool does."""

STOP_CHARACTERS = frozenset("的了吗呢把给请我你您他她吧啊")
"""The same in Chinese."""
